"""Bi-level learning with robust averaging: which points move when a mean, or a robust mean, shall reach a target."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

PENALTIES = {
    "quadratic": lambda z: 0.5 * z.square(),
    "pseudo-Huber": lambda z: (1 + z.square()).sqrt() - 1,
    "Welsch": lambda z: 1 - (-0.5 * z.square()).exp(),
}
POINTS = torch.tensor([-1.2, -0.7, -0.2, 0.1, 0.6, 1.3, 4.5, 6.0], dtype=torch.float64)
TARGET = 2.0


def study(fast: bool) -> dict[str, Any]:
    """Gradient descent on J(x) = 1/2 (y(x) - target)^2 in the points x, one run for each penalty."""
    found: dict[str, Any] = {}
    for name, phi in PENALTIES.items():
        average = tacit.Problem(objective=lambda x, u, phi=phi: phi(u - x).sum())
        x, y = POINTS[None].clone(), POINTS.median()[None]
        xs, ys = [], []
        for _ in range(4 if fast else 120):
            x.requires_grad_()
            answer = tacit.argmin(average, x, start=y)  # from the last answer: the same minimum is followed
            (slope,) = torch.autograd.grad(0.5 * (answer - TARGET).square().sum(), x)
            xs.append(x.detach()[0])
            ys.append(answer.detach()[0])
            x, y = (x - 0.5 * slope).detach(), answer.detach()
        found[name] = {"x": torch.stack(xs), "y": torch.stack(ys)}
    return found


def say(found: dict[str, Any]) -> str:
    """Where each average went, and how far the two outliers were pushed beside the six others."""
    lines = []
    for name, run in found.items():
        moved = (run["x"][-1] - run["x"][0]).abs()
        lines.append(
            f"{name:>12}: y {run['y'][0]:5.2f} -> {run['y'][-1]:.2f}   "
            f"inliers moved {moved[:6].mean():.3f}, outliers {moved[6:].mean():.3f}"
        )
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The points and their average against the step."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(8.6, 2.9), sharey=True)
    for panel, (name, run) in zip(axes, found.items()):
        panel.axhline(TARGET, linestyle="--", color=ink.text, linewidth=1)
        for i in range(len(POINTS)):
            panel.plot(run["x"][:, i], color=ink[1] if i >= 6 else ink[0], linewidth=1)
        panel.plot(run["y"], color=ink[2], linewidth=3)
        panel.set(xlabel="step", title=name)
    axes[0].set(ylabel="points, and their average (broad)")
    return figure


if __name__ == "__main__":
    present(study, say, draw)
