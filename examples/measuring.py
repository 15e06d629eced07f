"""What a layer costs: time forward and backward, bytes kept in between, and the largest tensor made on the way."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Cost:
    """Milliseconds forward and backward (medians), and megabytes that the graph keeps for the backward pass."""

    forward: float
    backward: float
    kept: float

    def __str__(self) -> str:
        return f"forward {self.forward:8.1f} ms   backward {self.backward:8.1f} ms   kept {self.kept:8.3f} MB"


def cost(layer: Callable[[], torch.Tensor], repeats: int = 5) -> Cost:
    """Measure `layer() -> y`, whose inputs require a gradient; the first call, which warms up, does not count."""
    forward, backward = [], []
    for attempt in range(repeats + 1):
        before = time.perf_counter()
        y = layer()
        middle = time.perf_counter()
        y.backward(torch.ones_like(y))
        after = time.perf_counter()
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
