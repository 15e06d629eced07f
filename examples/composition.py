"""A node after a node: the chain rule from left to right and from right to left, the same numbers at another price."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from drawing import Ink, present

import tacit
from tacit.implicit.composition import left_to_right, multiplications, right_to_left

K, M = 24, 12
generator = torch.Generator().manual_seed(0)
mix = torch.randn(M, K, dtype=torch.float64, generator=generator) / K**0.5


def inner(spread: torch.Tensor) -> tacit.Problem:
    """z in R^k, a regularised fit to the input x in R^n through the columns of `spread (n, k)`."""
    return tacit.Problem(lambda x, v: (1 + (spread @ v - x).square()).sqrt().sum() + 0.5 * v.square().sum())


outer = tacit.Problem(
    objective=lambda z, u: 0.5 * (u - mix @ z).square().sum() + 0.05 * u.pow(4).sum(),
    inequality=lambda z, u: u.square().sum()[None] - 1,
)


def seconds(call: Any, repeats: int) -> float:
    """The median of a few runs, after one that does not count."""
    call()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def study(fast: bool) -> dict[str, Any]:
    """Both orders, and the backward pass of both nodes, for growing n."""
    sizes = (100, 400) if fast else (100, 300, 1000, 3000, 10000)
    found: dict[str, Any] = {"sizes": torch.tensor(sizes), "left": [], "right": [], "counts": [], "agree": 0.0}
    for n in sizes:
        spread = torch.randn(n, K, dtype=torch.float64, generator=generator) / n**0.5
        x = (4 * torch.randn(8, n, dtype=torch.float64, generator=generator)).requires_grad_()
        z = tacit.argmin(inner(spread), x, start=torch.zeros(8, K, dtype=torch.float64))
        y = tacit.argmin(outer, z, start=torch.zeros(8, M, dtype=torch.float64))
        (swept,) = torch.autograd.grad(y.sum(), x)
        Dz = tacit.jacobian(inner(spread), x.detach(), y=z.detach())
        Dy = tacit.jacobian(outer, z.detach(), y=y.detach())
        v = torch.ones(8, M, dtype=torch.float64)
        repeats = 5 if fast else 31
        found["left"].append(1e6 * seconds(lambda v=v, D=[Dy, Dz]: left_to_right(v, D), repeats))
        found["right"].append(1e6 * seconds(lambda v=v, D=[Dy, Dz]: right_to_left(v, D), repeats))
        found["counts"].append(multiplications((M, K, n)))
        for product in (left_to_right(v, [Dy, Dz]), right_to_left(v, [Dy, Dz])):
            found["agree"] = max(found["agree"], float((product - swept).norm() / swept.norm()))
    return found


def say(found: dict[str, Any]) -> str:
    """Counts and times by n."""
    lines = [
        f"m = {M}, k = {K}, batch 8; both orders and backward() agree to {found['agree']:.0e}",
        "    n          left to right                right to left",
    ]
    for n, left, right, (few, many) in zip(found["sizes"].tolist(), found["left"], found["right"], found["counts"]):
        lines.append(f"{n:5d} {few:8d} multiplications {left:6.0f} us {many:8d} multiplications {right:6.0f} us")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Multiplications and time against n."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.6, 2.9))
    for k, (key, word) in enumerate(
        (("left", r"$(v^T\mathrm{D}y)\,\mathrm{D}z$"), ("right", r"$v^T(\mathrm{D}y\,\mathrm{D}z)$"))
    ):
        a.loglog(found["sizes"], [pair[k] for pair in found["counts"]], ".-", color=ink[k], label=word)
        b.loglog(found["sizes"], found[key], ".-", color=ink[k])
    a.set(xlabel="inputs $n$", title="multiplications a sample")
    b.set(xlabel="inputs $n$", title="microseconds a batch")
    a.legend()
    return figure


if __name__ == "__main__":
    present(study, say, draw)
