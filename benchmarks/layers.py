"""What the closed-form layers cost: robust pooling against max pooling, projections against `F.normalize`, in one run.

    python benchmarks/layers.py [--threads 1 2] [--size 24 1024 2048] [--turns 7] [--out docs/results/speed/layers]

All that is compared takes turns, once each, so that whatever else the machine does falls on all alike; a ratio is the
median over the turns of the ratios within a turn. "compiled" is the layer inside `torch.compile`; max pooling and
`F.normalize` are eager throughout. Memory is the peak of a process of its own during forward and backward, beyond the
input, in units of the input; the gradient, which max pooling has too, makes 1 of it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch._inductor.config
from _table import add_out, tell
from torch.nn import functional as F

from tacit.nn import LpBall, LpSphere, RobustPool, Simplex

Layer = Callable[[torch.Tensor], torch.Tensor]

POOLINGS = ("quadratic", "pseudo_huber", "huber", "welsch", "truncated_quadratic")
PROJECTIONS: dict[str, tuple[Layer, float | None]] = {  # with the budget, in units of F.normalize
    "L2 sphere": (LpSphere(2), 2),
    "L2 ball": (LpBall(2), 2),
    "Linf sphere": (LpSphere(math.inf), 2),
    "Linf ball": (LpBall(math.inf), 2),
    "L1 sphere": (LpSphere(1), 6),
    "L1 ball": (LpBall(1), 6),
    "simplex": (Simplex(), None),
    "L3 sphere": (LpSphere(3), None),
}
COLUMNS = ["work", "way", "threads", "pass", "ms", "ratio", "budget", "within"]


def largest(x: torch.Tensor) -> torch.Tensor:
    """Max pooling."""
    return x.max(-1).values


def pooling(name: str) -> Layer:
    """The layer of that name, or what it is compared with."""
    return {"max": largest, "mean": lambda x: x.mean(-1)}.get(name) or RobustPool(name)


def budget_of(name: str, way: str) -> float | None:
    """How many times max pooling a robust pooling may cost."""
    if name in ("max", "mean"):
        return None
    return 60 if name == "truncated_quadratic" else {"compiled": 4, "eager": 25}[way]


def step(layer: Layer, x: torch.Tensor, v: torch.Tensor, backward: bool) -> Callable[[], object]:
    """One pass of the layer, as something to call."""
    if backward:
        return lambda: torch.autograd.grad(layer(x), x, v)

    def forward() -> object:
        with torch.no_grad():
            return layer(x)

    return forward


def take_turns(steps: dict[str, Callable[[], object]], turns: int, calls: int) -> dict[str, list[float]]:
    """Seconds of a call of each, turn by turn."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for run in steps.values():  # compiles, allocates
        run()
    for _ in range(turns):
        for name, run in steps.items():
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            times[name].append((time.perf_counter() - begin) / calls)
    return times


def verdict(ratio: float, budget: float | None) -> tuple[str, str]:
    """The budget, and whether it is kept."""
    return ("-", "-") if budget is None else (f"{budget:g}", "yes" if ratio <= budget else "no")


def compare(
    layers: dict[tuple[str, str], tuple[Layer, float | None]], base: str, x: torch.Tensor, backward: bool, options
) -> list[list[str]]:
    """Rows of the table: each layer against the one named `base`, eager."""
    x = x.requires_grad_(backward)
    v = torch.cos(torch.arange(layers[base, "eager"][0](x).numel(), dtype=x.dtype)).reshape_as(
        layers[base, "eager"][0](x)
    )
    calls = max(1, 10_000_000 // x.numel())
    steps = {key: step(layer, x, v, backward) for key, (layer, _) in layers.items()}
    times = take_turns(steps, options.turns, calls)
    rows = []
    for (name, way), each in times.items():
        ratio = statistics.median(own / other for own, other in zip(each, times[base, "eager"]))
        limit = layers[name, way][1] if backward or base == "max" else None
        shown = [f"{1e3 * statistics.median(each):.3g}", f"{ratio:.2f}", *verdict(ratio, limit)]
        rows.append([name, way, str(torch.get_num_threads()), "fwd+bwd" if backward else "fwd", *shown])
        print("  ".join(rows[-1]), file=sys.stderr)
    return rows


def in_ways(name: str, layer: Layer, ways: list[str], budgets: Callable[[str], float | None]) -> dict:
    """A layer eager, compiled or both, each with its budget."""
    compiled = torch.compile(layer, fullgraph=True, dynamic=False)
    return {(name, way): (compiled if way == "compiled" else layer, budgets(way)) for way in ways}


def speed(threads: int, options: argparse.Namespace) -> list[list[str]]:
    """All rows for that many threads."""
    torch.set_num_threads(threads)
    torch._inductor.config.cpp.threads = threads  # or kernels compiled for another number would be taken from a cache
    rows = []
    sets = torch.randn(*options.size, generator=torch.Generator().manual_seed(0))
    vectors = torch.randn(256, 512, generator=torch.Generator().manual_seed(0))
    for backward in (False, True):
        torch.compiler.reset()  # every pooling is one more version of the same code, of which few are kept
        layers: dict = {("max", "eager"): (largest, None), ("mean", "eager"): (pooling("mean"), None)}
        for name in POOLINGS:
            layers |= in_ways(name, pooling(name), options.ways, lambda way, name=name: budget_of(name, way))
        rows += compare(layers, "max", sets, backward, options)
        layers = {("F.normalize", "eager"): (lambda x: F.normalize(x, dim=-1), None)}
        for name, (layer, budget) in PROJECTIONS.items():
            layers |= in_ways(name, layer, options.ways, lambda _, budget=budget: budget)
        rows += compare(layers, "F.normalize", vectors, backward, options)
    return rows


def kilobytes(key: str) -> int:
    """A number from what the system knows of this process."""
    return int(
        next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key)).split()[1]
    )


def measure_memory(name: str, way: str, size: list[int]) -> None:
    """In a process of its own: print the peak of a forward and backward beyond the input, in units of the input."""
    torch.set_num_threads(1)
    x = torch.randn(*size, requires_grad=True)
    layer = pooling(name)
    layer = torch.compile(layer, fullgraph=True, dynamic=False) if way == "compiled" else layer
    run = step(layer, x, torch.ones(size[:-1]), backward=True)
    run()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = kilobytes("VmRSS")
    run()
    print(1024 * (kilobytes("VmHWM") - before) / (4 * x.numel()))


def memory(options: argparse.Namespace) -> list[list[str]]:
    """Rows of the table of memory."""
    rows = []
    for name in ("max", *POOLINGS):
        for way in options.ways if name != "max" else ("eager",):
            words = [sys.executable, __file__, "--size", *map(str, options.size), "--measure", name, way]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            ratio = float(done.stdout)
            limit = None if name == "max" else 4.0 if name == "truncated_quadratic" else 2.5
            rows.append([name, way, "1", "memory", "-", f"{ratio:.2f}", *verdict(ratio, limit)])
            print("  ".join(rows[-1]), file=sys.stderr)
    return rows


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--size", type=int, nargs=3, default=[24, 1024, 2048], help="batch, channels, points")
    parser.add_argument("--ways", nargs="+", choices=["eager", "compiled"], default=["eager", "compiled"])
    parser.add_argument("--turns", type=int, default=7)
    add_out(parser)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the compiler's own, about what it loads
    if options.measure:
        measure_memory(*options.measure, options.size)
        return
    rows = [row for threads in options.threads for row in speed(threads, options)]
    rows += memory(options) if Path("/proc/self/clear_refs").exists() else []
    scale = f"pooling {tuple(options.size)}, projections (256, 512), float32, median of {options.turns} turns"
    tell("The cost of closed-form layers", COLUMNS, rows, options.out, scale=scale)


if __name__ == "__main__":
    main()
