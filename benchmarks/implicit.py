"""The cost of a gradient: backward of a generic node in units of one batched linear solve, and matrix-free at m = 10^5.

    python benchmarks/implicit.py [--threads 1]

The unit is `torch.linalg.solve_ex` of a batch of 64 matrices of the KKT system's size, measured in the same run. "less
Hessian" leaves out the evaluation of the Hessian by `torch.func`, which is counted in "all".
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import torch
from _table import add_out, tell

import tacit
from tacit.problem import Instance
from tacit.problem.letters import letters

BATCH = 64


def seconds(run: Callable[[], object], budget: float = 2.0) -> float:
    """Median of repeated runs."""
    run()
    times: list[float] = []
    while sum(times) < budget and len(times) < 60:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def generic(m: int) -> tuple[tacit.Problem, torch.Tensor, torch.Tensor]:
    """A robust fit with 2 m inputs a sample, and its solution."""
    generator = torch.Generator().manual_seed(0)
    W = torch.randn(2 * m, m, generator=generator, dtype=torch.float64) / m**0.5

    def objective(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        r = W @ u - x
        return torch.nn.functional.softplus(r).sum() + 0.1 * torch.log1p(r.square()).sum() + 0.5 * u.square().sum()

    problem = tacit.Problem(objective)
    x = torch.randn(BATCH, 2 * m, generator=generator, dtype=torch.float64)
    return problem, x, tacit.solve(problem, x, start=x.new_zeros(BATCH, m)).y


def dense(m: int) -> list[str]:
    """One row of the table for dense systems."""
    problem, x, y0 = generic(m)
    leaf = x.clone().requires_grad_()
    y = tacit.argmin(problem, leaf, solver=lambda _: y0)
    v = torch.ones_like(y)
    instance, lam = Instance.bind(problem, (x,), (0,), y0), x.new_zeros(BATCH, 0)
    H = letters(instance, y0, lam).H
    unit = seconds(lambda: torch.linalg.solve_ex(H, v[..., None]))
    whole = seconds(lambda: torch.autograd.grad(y, leaf, v, retain_graph=True))
    hessian = seconds(lambda: letters(instance, y0, lam))
    ratio = (whole - hessian) / unit
    budget = "" if m < 100 else "yes" if ratio <= 4 else "no"
    cells = (f"{unit * 1e3:.3f}", f"{whole * 1e3:.2f}", f"{hessian * 1e3:.2f}", f"{whole / unit:.1f}", f"{ratio:.1f}")
    return [str(m), *cells, budget]


def chain(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """An objective with a banded Hessian."""
    return torch.cosh(u - x).sum() + 5 * (u[1:] - u[:-1]).square().sum()


def free(m: int) -> list[list[str]]:
    """Rows of the table for large systems."""
    problem = tacit.Problem(chain)
    x = torch.randn(1, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y0, instance = x.clone(), Instance.bind(problem, (x,), (0,), x)
    for _ in range(12):  # Newton's method by conjugate gradients
        step = tacit.linalg.conjugate_gradients(instance.hessian_operator(y0, x.new_zeros(1, 0)), instance.gradient(y0))
        y0 = y0 - step.x
    rows = []
    leaf = x.clone().requires_grad_()
    product = instance.hessian_operator(y0, x.new_zeros(1, 0))
    unit = seconds(lambda: product(y0), 0.5)
    ways = {"CG": tacit.Implicit(linear_solver="matrix-free"), "structure seen": tacit.Implicit()}
    for name, policy in ways.items():
        y = tacit.argmin(problem, leaf, solver=lambda _: y0, gradient=policy)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        first = torch.autograd.grad(y, leaf, torch.ones_like(y), retain_graph=True)[0]
        extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        whole = seconds(lambda y=y: torch.autograd.grad(y, leaf, torch.ones_like(y), retain_graph=True))
        cells = (f"{whole:.3f}", f"{whole / unit:.0f}", f"{extra:.0f}", f"{float(first.abs().sum()):.6f}")
        rows.append([f"{m:,}", name, *cells])
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    add_out(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    columns = ["m", "one solve, ms", "backward, ms", "Hessian, ms", "all / solve", "less Hessian / solve", "at most 4"]
    rows = [dense(m) for m in (5, 20, 100)]
    title = f"Backward of a generic node, float64, batch {BATCH}"
    tell(title, columns, rows, options.out, threads=options.threads)
    columns = ["m", "how", "backward, s", "in Hessian products", "extra peak memory, MB", "checksum"]
    rows = [row for m in (10_000, 100_000) for row in free(m)]
    out = options.out and options.out.with_name(f"{options.out.name}_large")
    tell("Backward of large nodes, float64, one sample", columns, rows, out, threads=options.threads)


if __name__ == "__main__":
    main()
