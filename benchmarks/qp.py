"""Quadratic program layers side by side: qpth, cvxpylayers, proxsuite, moreau and tacit, on the same data and threads.

    python benchmarks/qp.py [--threads 1] [--rounds 3] [--layers tacit proxsuite ...] [--sizes 10,0,20 ...] [--batches 1 32]
                              [--out docs/results/speed/qp]

Each peer lives in an environment of its own under runs/qp, made on the first run, because their requirements conflict.
Every layer has a process of its own; at every size they take turns, round after round, and the smallest time counts: so
a machine shared with others disturbs all of them alike. A program's objective is strongly convex, no row is weakly
active, all six inputs are batched, and gradients are taken in all six.

Accuracy: x against the solution of the KKT system on the active rows, refined with residuals in extended precision, its
signs checked; gradients against central differences of that solution, along random directions in all inputs at once.

Budgets, each answered with yes or no in the table: forward + backward at most 0.9 times the fastest peer up to n = 100
and 1.1 times beyond, x to 1e-9, gradients to 1e-8.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import time
import venv
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve()
RUNS = HERE.parents[1] / "runs" / "qp"
PEERS = {
    "qpth": ["qpth==0.0.18"],
    "cvxpylayers": ["cvxpylayers==1.2.0"],
    "proxsuite": ["proxsuite==0.8.0"],
    "moreau": ["moreau==0.4.1"],
}
LAYERS = ("tacit", *PEERS)
SIZES = ((10, 0, 20), (50, 10, 50), (100, 0, 100), (200, 50, 200))
BATCHES = (1, 32, 128)
CHECKED = 2  # samples of a batch whose accuracy is measured
NAMES = ("Q", "q", "A", "b", "G", "h")
X_ERROR, G_ERROR = 1e-9, 1e-8
Data = tuple[torch.Tensor, ...]


def programs(n: int, p: int, q: int, batch: int) -> Data:
    """Random programs with a known feasible point; the first samples are the same for every batch size."""
    samples = []
    for i in range(batch):
        generator = torch.Generator().manual_seed(1000 * n + i)

        def randn(*shape: int, generator: torch.Generator = generator) -> torch.Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        L, A, G, u = randn(n, n), randn(p, n), randn(q, n), randn(n)
        slack = torch.rand(q, generator=generator, dtype=torch.float64)
        samples.append((L @ L.T / n + 0.1 * torch.eye(n, dtype=torch.float64), randn(n), A, A @ u, G, G @ u + slack))
    return tuple(torch.stack(part) for part in zip(*samples, strict=True))


# ---- the layers: each takes a size and returns a function of the six batched inputs ------------------------------------


def make_tacit(n: int, p: int, q: int, batch: int) -> Callable[..., torch.Tensor]:
    from tacit.nn.functional.quadratic import quadratic_program

    def layer(Q, c, A, b, G, h):
        return quadratic_program(Q, c, A if p else None, b if p else None, G, h)

    return layer


def make_qpth(n: int, p: int, q: int, batch: int) -> Callable[..., torch.Tensor]:
    from qpth.qp import QPFunction

    solve = QPFunction(verbose=-1, check_Q_spd=False)
    none = torch.empty(0, dtype=torch.float64)
    return lambda Q, c, A, b, G, h: solve(Q, c, G, h, A if p else none, b if p else none)


def make_cvxpylayers(n: int, p: int, q: int, batch: int) -> Callable[..., torch.Tensor]:
    import cvxpy as cp
    from cvxpylayers.torch import CvxpyLayer

    # A quadratic form with a parameter in it is not "disciplined"; its square root is: |R u|^2 with Q = R'R.
    u, R, c, G, h = cp.Variable(n), cp.Parameter((n, n)), cp.Parameter(n), cp.Parameter((q, n)), cp.Parameter(q)
    rows, parameters = [G @ u <= h], [R, c, G, h]
    if p:
        A, b = cp.Parameter((p, n)), cp.Parameter(p)
        rows, parameters = [A @ u == b, *rows], [R, c, A, b, G, h]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(R @ u) + c @ u), rows)
    layer = CvxpyLayer(problem, parameters=parameters, variables=[u])

    def run(Q, c, A, b, G, h):
        R = torch.linalg.cholesky(Q).mT
        return layer(R, c, *((A, b) if p else ()), G, h)[0]

    return run


def make_proxsuite(n: int, p: int, q: int, batch: int) -> Callable[..., torch.Tensor]:
    from proxsuite.torch.qplayer import QPFunction

    solve = QPFunction(structural_feasibility=True, omp_parallel=False)

    def run(Q, c, A, b, G, h):
        none = torch.empty(0, dtype=torch.float64)
        return solve(Q, c, A if p else none, b if p else none, G, torch.full_like(h, -1e20), h)[0]

    return run


def make_moreau(n: int, p: int, q: int, batch: int) -> Callable[..., torch.Tensor]:
    import moreau
    from moreau.torch import Solver

    def dense(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.arange(0, rows * n + 1, n), torch.arange(n).repeat(rows)

    cones = moreau.Cones(num_zero_cones=p, num_nonneg_cones=q)
    settings = moreau.Settings(device="cpu", batch_size=batch, enable_grad=True)
    solver = Solver(n, p + q, *dense(n), *dense(p + q), cones=cones, settings=settings)

    def run(Q, c, A, b, G, h):
        rows, right = (torch.cat([A, G], 1), torch.cat([b, h], 1)) if p else (G, h)
        return solver.solve(Q.reshape(batch, -1), rows.reshape(batch, -1), c, right).x

    return run


MAKERS = {
    "tacit": make_tacit,
    "qpth": make_qpth,
    "cvxpylayers": make_cvxpylayers,
    "proxsuite": make_proxsuite,
    "moreau": make_moreau,
}


# ---- one layer, in its own process --------------------------------------------------------------------------------------


def smallest(run: Callable[[], object], budget: float) -> float:
    """The smallest time of repeated runs within a budget of seconds; one run, where one exceeds it."""
    times: list[float] = []
    while not times or (sum(times) < budget and len(times) < 500):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def work(name: str, threads: int) -> None:
    """Measure what is asked for, line by line, until the input ends: `{"size", "batch", "budget", "out"}`."""
    torch.set_num_threads(threads)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        task = json.loads(line)
        (n, p, q), batch = task["size"], task["batch"]
        weight = torch.randn(batch, n, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
        try:
            result = measure(MAKERS[name](n, p, q, batch), programs(n, p, q, batch), weight, task["budget"])
        except Exception as error:  # noqa: BLE001  a peer that fails is a result, and its own words say which
            result = {"error": f"{type(error).__name__}: {error}"[:300]}
        Path(task["out"]).write_text(json.dumps(result))
        print("done", flush=True)


def measure(layer: Callable[..., torch.Tensor], data: Data, weight: torch.Tensor, budget: float) -> dict:
    """Seconds forward and forward + backward, the first answers and their gradients."""
    leaves = [t.clone().requires_grad_() for t in data]
    used = [t for t in leaves if t.numel()]

    def both() -> tuple[torch.Tensor, ...]:
        u = layer(*leaves)
        return u, torch.autograd.grad((u * weight).sum(), used)

    u, grads = both()  # what is made once is made here
    few = slice(0, CHECKED)
    return {
        "forward": smallest(lambda: layer(*leaves), budget),
        "both": smallest(both, budget),
        "u": u.detach()[few].tolist(),
        "grads": {
            name: grad[few].tolist()
            for name, grad in zip([k for k, t in zip(NAMES, leaves, strict=True) if t.numel()], grads, strict=True)
        },
    }


# ---- what is right ------------------------------------------------------------------------------------------------------


def active_rows(sample: list[np.ndarray], guess: np.ndarray) -> np.ndarray:
    """Which inequalities hold with equality at a good guess."""
    return np.array(sample[5] - sample[4] @ guess < 1e-6)


def exact(sample: list[np.ndarray], active: np.ndarray) -> np.ndarray:
    """The solution of one program: its KKT system on the active rows, residuals in extended precision, signs checked.

    Raises:
        ArithmeticError: these are not the active rows of the solution.
    """
    Q, c, A, b, G, h = (part.astype(np.longdouble) for part in sample)
    rows, right = np.concatenate([A, G[active]]), np.concatenate([b, h[active]])
    n, k = len(c), len(right)
    K = np.block([[Q, rows.T], [rows, np.zeros((k, k))]])
    goal = np.concatenate([-c, right])
    inverse, z = np.linalg.inv(K.astype(np.float64)), np.zeros(n + k, np.longdouble)
    for _ in range(12):
        z = z + inverse @ (goal - K @ z).astype(np.float64)
    u, multipliers = z[:n], z[n + len(b) :]
    if np.abs(goal - K @ z).max() > 1e-15 or multipliers.min(initial=1.0) < 0 or (G @ u - h).max(initial=-1) > 1e-12:
        raise ArithmeticError("these are not the active rows of the solution")
    return u


def errors(result: dict, data: Data, weight: torch.Tensor, guess: list[list[float]]) -> tuple[float, float]:
    """The largest error of x, and of a directional derivative against central differences, over the checked samples."""
    worst_x = worst_g = 0.0
    for i, u in enumerate(result["u"]):
        sample = [t[i].numpy() for t in data]
        w, active = weight[i].numpy(), active_rows(sample, np.array(guess[i]))
        worst_x = max(worst_x, float(np.abs(exact(sample, active) - np.array(u)).max()))
        rng = np.random.default_rng(i)
        for _ in range(3):
            direction = [rng.standard_normal(part.shape) for part in sample]
            direction[0] = 0.5 * (direction[0] + direction[0].T)
            size = np.sqrt(sum((d**2).sum() for d in direction))
            direction = [d / size for d in direction]

            def value(t: float, sample=sample, direction=direction, w=w, active=active) -> np.longdouble:
                moved = [part + np.longdouble(t) * d for part, d in zip(sample, direction, strict=True)]
                return w @ exact(moved, active)

            coarse, fine = ((value(t) - value(-t)) / (2 * t) for t in (np.longdouble(2e-6), np.longdouble(1e-6)))
            truth = (4 * fine - coarse) / 3
            ours = sum(
                float((np.array(result["grads"][name][i]) * d).sum())
                for name, d in zip(NAMES, direction, strict=True)
                if name in result["grads"]
            )
            worst_g = max(worst_g, abs(float(truth) - ours))
    return worst_x, worst_g


# ---- all of them --------------------------------------------------------------------------------------------------------


def python_of(name: str) -> Path:
    """The interpreter of a layer's environment, made if it is not there yet."""
    if name == "tacit":
        return Path(sys.executable)
    python = RUNS / name / "bin" / "python"
    if not python.exists():
        print(f"making an environment for {name} ...", file=sys.stderr)
        venv.create(RUNS / name, with_pip=True)
        torch_version = importlib.metadata.version("torch").split("+")[0]
        command = [str(python), "-m", "pip", "install", "-q", f"torch=={torch_version}", "numpy", *PEERS[name]]
        subprocess.run(command, check=True)
    return python


class Worker:
    """A layer in a process of its own, which waits while the others are measured."""

    def __init__(self, name: str, threads: int) -> None:
        self.out = RUNS / f"{name}.json"
        command = [str(python_of(name)), str(HERE), "--worker", name, "--threads", str(threads)]
        limits = {f"{kind}_NUM_THREADS": str(threads) for kind in ("OMP", "MKL", "OPENBLAS", "RAYON")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **limits}
        )

    def measure(self, size: tuple[int, int, int], batch: int, budget: float) -> dict:
        """One size, one batch."""
        task = {"size": size, "batch": batch, "budget": budget, "out": str(self.out)}
        print(json.dumps(task), file=self.process.stdin, flush=True)
        while (line := self.process.stdout.readline()) and line.strip() != "done":
            pass  # a peer's own chatter
        return json.loads(self.out.read_text()) if line else {"error": "the process ended: out of memory?"}

    def end(self) -> None:
        """Let it go."""
        self.process.stdin.close()
        self.process.wait()


def merge(old: dict | None, new: dict) -> dict:
    """Keep the smallest times."""
    if old is None or "error" in old or "error" in new:
        return new
    return {**new, **{k: min(new[k], old[k]) for k in ("forward", "both")}}


def budgets(n: int, ratio: float | None, x_error: float, g_error: float) -> dict[str, bool]:
    """Which budgets are kept at one size and batch."""
    limit = 0.9 if n <= 100 else 1.1
    speed = {} if ratio is None else {f"speed <= {limit}": ratio <= limit}
    return {**speed, f"x <= {X_ERROR:.0e}": x_error <= X_ERROR, f"gradient <= {G_ERROR:.0e}": g_error <= G_ERROR}


COLUMNS = ("n, p, q", "batch", "layer", "forward", "forward + backward", "/ fastest peer", "x error", "gradient error",
           "budgets kept")  # fmt: skip


def table(found: dict[str, dict], sizes: list[tuple[int, int, int]], batches: list[int]) -> list[list[str]]:
    """Times in milliseconds, ratios to the fastest peer, errors, and whether our budgets are kept."""
    rows = []
    for n, p, q in sizes:
        for batch in batches:
            key, data = f"{n},{p},{q}/{batch}", programs(n, p, q, batch)
            weight = torch.randn(batch, n, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
            entries = {name: found[name][key] for name in found if key in found[name]}
            peers = [e["both"] for name, e in entries.items() if name != "tacit" and "both" in e]
            guess = next((e["u"] for e in entries.values() if "u" in e), None)
            for name, e in entries.items():
                head = [f"{n}, {p}, {q}", str(batch), name]
                if "error" in e:
                    rows.append([*head, e["error"], "", "", "", "", ""])
                    continue
                x_error, g_error = errors(e, data, weight, guess)
                ratio = e["both"] / min(peers) if peers else None
                answers = budgets(n, ratio, x_error, g_error) if name == "tacit" else {}
                words = ", ".join(f"{what} {'yes' if held else 'no'}" for what, held in answers.items())
                times = [f"{e['forward'] * 1e3:.3f}", f"{e['both'] * 1e3:.3f}", f"{ratio:.2f}" if peers else ""]
                rows.append([*head, *times, f"{x_error:.1e}", f"{g_error:.1e}", words])
    return rows


def main() -> None:
    """Drive every layer, or work as one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = lambda text: tuple(int(part) for part in text.split(","))  # noqa: E731
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for one timing")
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--sizes", nargs="+", type=size, default=list(SIZES))
    parser.add_argument("--batches", nargs="+", type=int, default=list(BATCHES))
    parser.add_argument("--out", type=Path, metavar="STEM", help="write STEM.md and STEM.csv too")
    parser.add_argument("--worker", choices=LAYERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker, args.threads)
        return
    RUNS.mkdir(parents=True, exist_ok=True)
    workers = {name: Worker(name, args.threads) for name in args.layers}
    found: dict[str, dict] = {name: {} for name in args.layers}
    for n, p, q in args.sizes:
        for batch in args.batches:
            key = f"{n},{p},{q}/{batch}"
            for turn in range(args.rounds):
                print(f"{key}: round {turn + 1} of {args.rounds}", file=sys.stderr, flush=True)
                for name, worker in workers.items():
                    found[name][key] = merge(found[name].get(key), worker.measure((n, p, q), batch, args.budget))
    for worker in workers.values():
        worker.end()
    from _table import tell  # here, since a peer's environment has no tacit

    peers = ", ".join(requirement for name in args.layers if name in PEERS for requirement in PEERS[name])
    facts = {
        "threads": args.threads,
        "peers": peers,
        "times": f"milliseconds a batch, the least of {args.rounds} rounds",
    }
    rows = table(found, args.sizes, args.batches)
    tell("Quadratic programs, float64, gradients in all six matrices", COLUMNS, rows, args.out, **facts)


if __name__ == "__main__":
    main()
