"""What a layer costs: time forward and backward, bytes kept in between, and the largest tensor made on the way.

`beside_unrolled` sets a layer beside the usual alternative, an iteration whose steps are differentiated one by one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Cost:
    """Milliseconds of one processor forward and backward (medians), and megabytes that the graph keeps for the backward pass."""

    forward: float
    backward: float
    kept: float


def cost(layer: Callable[[], torch.Tensor], repeats: int = 5) -> Cost:
    """Measure `layer() -> y`, whose inputs require a gradient; the first call, which warms up, does not count."""
    forward, backward = [], []
    for attempt in range(repeats + 1):
        before = time.process_time()  # what else the machine has to do does not count
        y = layer()
        middle = time.process_time()
        y.backward(torch.ones_like(y))
        after = time.process_time()
        if attempt:
            forward.append(1e3 * (middle - before))
            backward.append(1e3 * (after - middle))
    kept = kept_bytes(layer()) / 1e6
    return Cost(statistics.median(forward), statistics.median(backward), kept)


def kept_bytes(y: torch.Tensor) -> int:
    """Bytes of the tensors that the graph behind `y` holds on to, each storage counted once."""
    sizes: dict[int, int] = {}
    waiting, met = [y.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        waiting += [following for following, _ in node.next_functions]
        saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        saved += getattr(node, "saved_tensors", ())
        for value in saved:
            for tensor in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(tensor, torch.Tensor):
                    storage = tensor.untyped_storage()
                    sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


class Peak(TorchDispatchMode):
    """While it is entered, the bytes of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return out


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    """|a - b| / |b|."""
    return float((a - b).norm() / b.norm())


class Row(NamedTuple):
    """What one way to a gradient costs, and its relative distance from the implicit one; `steps` is 0 for that one."""

    steps: int
    cost: Cost
    error: float


def beside_unrolled(
    implicit: Callable[[], torch.Tensor],
    unrolled: Callable[[int], torch.Tensor],
    steps: Sequence[int],
    wrt: torch.Tensor,
) -> list[Row]:
    """The costs of `implicit()` and of `unrolled(n)`, each a loss, and how far apart their gradients in `wrt` are."""
    (wanted,) = torch.autograd.grad(implicit(), wrt)
    rows = [Row(0, cost(implicit, 3), 0.0)]
    for n in steps:
        (got,) = torch.autograd.grad(unrolled(n), wrt)
        rows.append(Row(n, cost(partial(unrolled, n), 3), relative(got, wanted)))
    return rows


def table(rows: list[Row]) -> list[str]:
    """The rows in words, a line each."""
    lines = [f"{'':16}{'forward':>12}{'backward':>12}{'kept':>12}   gradient off by"]
    for n, cost, error in rows:
        name, off = (f"{n} steps unrolled", f"{error:.0e}") if n else ("implicit", "-")
        lines.append(f"{name:<18}{cost.forward:7.1f} ms{cost.backward:9.1f} ms{cost.kept:9.3f} MB   {off}")
    return lines
