"""What a batch costs: `python benchmarks/solvers.py [--sizes 2 10 50] [--batches 1 8 32 128 512] [--out FILE]`.

One nonlinear program of m unknowns (a robust fit inside a ball, with a linear equality and bounds) is solved in batches
of 1 to 512 by the default solver; SciPy's SLSQP solves the same samples one after another, with derivatives from torch.
One thread. The table goes to standard output as Markdown, and to a file where one is named; times are milliseconds, the
best of three runs. Budget: a batch of 128 costs at most ten times one problem at m = 10.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from _table import add_out, tell
from scipy import optimize

from tacit.problem import Instance, Problem, Status
from tacit.shapes import Tensor
from tacit.solvers import default_solver


def objective(x: Tensor, u: Tensor) -> Tensor:
    return (torch.sqrt(1 + (u - x).square()) - 1).sum() + 0.1 * torch.sin(u).sum()


def equality(x: Tensor, u: Tensor) -> Tensor:
    return u.sum()[None] - 1


def inequality(x: Tensor, u: Tensor) -> Tensor:
    return torch.cat([u.square().sum()[None] - 2, -1 - u, u - 1])


PROBLEM = Problem(objective, equality, inequality)


def best_of(run: Callable[[], object], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def scipy_seconds(x: Tensor, count: int) -> float:
    """Seconds per problem of SLSQP, with gradients from torch."""

    def solve(sample: Tensor) -> None:
        def value(f: Callable[[Tensor, Tensor], Tensor]) -> Callable[[np.ndarray], np.ndarray]:
            return lambda u: f(sample, torch.from_numpy(u)).numpy()

        def derivative(f: Callable[[Tensor, Tensor], Tensor]) -> Callable[[np.ndarray], np.ndarray]:
            jacobian = torch.func.jacrev(f, argnums=1)
            return lambda u: jacobian(sample, torch.from_numpy(u)).numpy()

        def negative(x: Tensor, u: Tensor) -> Tensor:
            return -inequality(x, u)

        constraints = [
            {"type": "eq", "fun": value(equality), "jac": derivative(equality)},
            {"type": "ineq", "fun": value(negative), "jac": derivative(negative)},
        ]
        start = np.zeros(len(sample))
        optimize.minimize(
            value(objective), start, jac=derivative(objective), constraints=constraints, method="SLSQP", tol=1e-10
        )

    return best_of(lambda: [solve(sample) for sample in x[:count]], 1) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 10, 50])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32, 128, 512])
    add_out(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for m in options.sizes:
        generator = torch.Generator().manual_seed(m)
        times, converged = {}, True
        for b in options.batches:
            x = torch.randn(b, m, generator=generator, dtype=torch.float64)
            start = torch.zeros_like(x)
            instance = Instance.bind(PROBLEM, (x,), (0,), start)
            found = default_solver(instance).solve(instance, start)
            converged &= bool((found.status == Status.CONVERGED).all())
            times[b] = best_of(lambda i=instance, s=start: default_solver(i).solve(i, s))
            print(f"m = {m}, b = {b}: {1e3 * times[b]:.0f} ms", file=sys.stderr)
        each = scipy_seconds(x, min(len(x), 8))
        ratio = times[128] / times[1] if {1, 128} <= times.keys() else float("nan")
        within = {True: "yes", False: "no"}[ratio <= 10] if ratio == ratio else ""
        cells = [f"{1e3 * t:.0f}" for t in times.values()]
        rows.append([m, *cells, f"{ratio:.1f}", within, f"{1e3 * each:.1f}", "all" if converged else "not all"])
    head = [f"b = {b}" for b in options.batches]
    columns = ["m", *head, "b = 128 over b = 1", "at most 10", "SciPy, each", "converged"]
    tell("A batch of nonlinear programs, milliseconds", columns, rows, options.out, threads=1)


if __name__ == "__main__":
    main()
