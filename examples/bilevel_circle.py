"""Bi-level learning on the circle: move x so that its projection onto the circle comes close to a target."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

circle = tacit.Problem(
    objective=lambda x, u: 0.5 * (u - x).square().sum(),
    equality=lambda x, u: u.square().sum()[None] - 1,
)
TARGET = torch.tensor([1.1, 0.9], dtype=torch.float64)
STARTS = torch.tensor([[-1.6, -0.7], [0.45, -1.4], [-0.35, 0.2], [-0.2, 1.8]], dtype=torch.float64)


def study(fast: bool) -> dict[str, Any]:
    """Gradient descent on J(x) = 1/2 |y(x) - target|^2 from four starts; return the trajectories of x and y."""
    x = STARTS.clone()
    xs, ys, losses, slants, steepest = [], [], [], [], 0.0
    for _ in range(4 if fast else 80):
        x.requires_grad_()
        y = tacit.argmin(circle, x, start=x.detach())
        loss = 0.5 * (y - TARGET).square().sum(1)
        (slope,) = torch.autograd.grad(loss.sum(), x)
        xs.append(x.detach())
        ys.append(y.detach())
        losses.append(loss.detach())
        slants.append(((slope * x).sum(1) / x.norm(dim=1)).abs().max().detach())
        steepest = max(steepest, float(slope.norm(dim=1).max()))
        x = (x - 0.25 * slope).detach()
    return {
        "x": torch.stack(xs),
        "y": torch.stack(ys),
        "loss": torch.stack(losses),
        "slant": torch.stack(slants).max(),
        "steepest": steepest,
        "best": 0.5 * (TARGET.norm() - 1).square(),
    }


def say(found: dict[str, Any]) -> str:
    """What was reached, and what the constraint does to the gradient."""
    first, last = found["loss"][0], found["loss"][-1]
    return (
        f"J at the four starts:  {'  '.join(f'{v:.4f}' for v in first)}\n"
        f"J after {len(found['loss'])} steps:      {'  '.join(f'{v:.4f}' for v in last)}\n"
        f"least J on the circle: {found['best']:.4f}\n"
        f"gradients range up to {found['steepest']:.2f}; their part along x is at most {found['slant']:.0e}"
    )


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The trajectories of x around the circle and of y on it, and J against the step."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.6, 3.6), width_ratios=(1, 1.1))
    angle = torch.linspace(0, 2 * torch.pi, 200)
    a.plot(angle.cos(), angle.sin(), color=ink.faint)
    a.plot(*TARGET, "*", color=ink.text, markersize=11, zorder=3)
    a.annotate("target", TARGET, xytext=(0, -16), textcoords="offset points", ha="center")
    for k in range(len(STARTS)):
        x, y = found["x"][:, k], found["y"][:, k]
        a.plot(x[:, 0], x[:, 1], color=ink[k], marker=".", markersize=3)
        a.plot(y[:, 0], y[:, 1], color=ink[k], linewidth=3, alpha=0.5)
        a.plot(*x[0], "o", color=ink[k])
        a.plot([x[0, 0], y[0, 0]], [x[0, 1], y[0, 1]], ":", color=ink[k], linewidth=1)
        b.semilogy(found["loss"][:, k] - found["best"] + 1e-12, color=ink[k])
    a.set(aspect="equal", title="$x$ (dots) and its projection $y(x)$ (broad)", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    b.set(xlabel="step", title="$J(x)$ above the least it can be")
    return figure


if __name__ == "__main__":
    present(study, say, draw)
