"""A vector-Jacobian product without B: time and memory of both orders, measured as the inputs grow."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any

import torch
from drawing import Ink, present
from measuring import Peak, relative

import tacit

M, BATCH = 20, 4
middle = tacit.Problem(objective=lambda x, u: (1 + (x - u).square().sum(1)).sqrt().sum())  # x (n / m, m), u (m,)
HOW = {
    "by the Jacobian": None,
    "product, dense": tacit.Implicit(linear_solver="dense"),
    "product, matrix-free": tacit.Implicit(linear_solver="matrix-free"),
}


def measured(call: Any, repeats: int) -> tuple[torch.Tensor, float, float]:
    """What it returns, its median milliseconds, and the megabytes of the largest tensor it makes."""
    with Peak() as peak:
        out = call()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return out, 1e3 * statistics.median(times), peak.bytes / 1e6


def study(fast: bool) -> dict[str, Any]:
    """v'Dy by the Jacobian and a product, and by the backward pass, for n numbers pooled into m."""
    sizes = (200, 600) if fast else (200, 600, 2000, 6000, 20000, 60000)
    found: dict[str, Any] = {"sizes": sizes, "input": [], "agree": 0.0, **{how: [] for how in HOW}}
    v = torch.ones(BATCH, M, dtype=torch.float64)
    for n in sizes:
        x = (2 * torch.randn(BATCH, n // M, M, dtype=torch.float64)).requires_grad_()
        y = tacit.solve(middle, x.detach(), start=torch.zeros(BATCH, M, dtype=torch.float64)).y
        found["input"].append(x.numel() * x.element_size() / 1e6)
        products = []
        for how, policy in HOW.items():
            if policy is None:
                call = partial(by_jacobian, x.detach(), y, v)
            else:
                answer = tacit.argmin(middle, x, solver=lambda _, y=y: y, gradient=policy)
                call = partial(torch.autograd.grad, answer, x, v, retain_graph=True)
            product, *costs = measured(call, 2 if fast else 7)
            products.append(product[0])
            found[how].append(costs)
        found["agree"] = max(found["agree"], *(relative(p, products[0]) for p in products))
    return found


def by_jacobian(x: torch.Tensor, y: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor]:
    """The same product by way of all of Dy."""
    return (torch.einsum("bm,bmkj->bkj", v, tacit.jacobian(middle, x, y=y)),)


def say(found: dict[str, Any]) -> str:
    """Time and memory by n."""
    lines = [
        f"m = {M}, batch {BATCH}; all agree to {found['agree']:.0e}; milliseconds, and MB of the largest tensor made",
        "     n      input" + "".join(f"{how:>24}" for how in HOW),
    ]
    for i, (n, size) in enumerate(zip(found["sizes"], found["input"])):
        costs = "".join(f"{found[how][i][0]:10.1f} ms {found[how][i][1]:7.3f} MB" for how in HOW)
        lines.append(f"{n:6d}   {size:.3f} MB{costs}")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Milliseconds and megabytes against n."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7.6, 2.9))
    for k, (panel, title) in enumerate(zip(axes, ("milliseconds", "largest tensor, megabytes"))):
        for colour, how in zip((1, 2, 0), HOW):
            look = {"linewidth": 5, "alpha": 0.4} if k and colour == 1 else {}  # another line lies on it
            panel.loglog(found["sizes"], [row[k] for row in found[how]], ".-", color=ink[colour], label=how, **look)
        panel.set(xlabel="inputs $n$", title=title)
    axes[1].loglog(found["sizes"], found["input"], ":", color=ink.text, label="the input itself")
    axes[1].legend(fontsize=8)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
