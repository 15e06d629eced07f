"""A first node: a mean that one wild measurement cannot move, and the weight its gradient gives to each."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

robust_mean = tacit.Problem(
    objective=lambda x, u: (1 + (u - x).square()).sqrt().sum(),  # pseudo-Huber with alpha = 1, up to a constant
)


def study(fast: bool) -> dict[str, Any]:
    """Move the last of six measurements away from the others; return means, their slopes, and the objectives."""
    place = torch.linspace(-4, 12, 41 if fast else 161, dtype=torch.float64)
    others = torch.tensor([-0.9, -0.4, 0.0, 0.3, 1.0], dtype=torch.float64)
    x = torch.cat([others.expand(len(place), 5), place[:, None]], dim=1).requires_grad_()
    y = tacit.argmin(robust_mean, x, start=lambda x: x.median())
    (slope,) = torch.autograd.grad(y.sum(), x)
    u = torch.linspace(-4, 12, 200, dtype=torch.float64)
    picks = [len(place) // 4, len(place) - 1]
    curves = torch.stack([(1 + (u[:, None] - x[i].detach()).square()).sqrt().sum(1) for i in picks])
    return {
        "place": place,
        "y": y.detach(),
        "mean": x.detach().mean(1),
        "slope": slope,
        "u": u,
        "curves": curves,
        "picks": picks,
    }


def say(found: dict[str, Any]) -> str:
    """Where both means end, and how much the stray measurement still counts."""
    return (
        f"stray measurement at {found['place'][-1]:.0f}: mean {found['mean'][-1]:.2f}, robust mean {found['y'][-1]:.2f}\n"
        f"its weight in the gradient: mean {1 / 6:.3f}, robust mean {found['slope'][-1, -1]:.4f}\n"
        f"the weights of all six sum to {found['slope'].sum(1).mean():.6f}"
    )


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The objective for two positions of the stray point, the answers, and their derivatives."""
    import matplotlib.pyplot as plt

    figure, (a, b, c) = plt.subplots(1, 3, figsize=(8.6, 2.7))
    for k, (i, curve) in enumerate(zip(found["picks"], found["curves"])):
        a.plot(found["u"], curve, color=ink[k], label=f"stray point at {found['place'][i]:.0f}")
        a.plot(found["y"][i], curve.min(), "o", color=ink[k])
    a.set(xlabel="$u$", title="objective $f(x, u)$ and its minimum")
    a.legend(fontsize=8)
    b.plot(found["place"], found["mean"], "--", color=ink[1], label="mean")
    b.plot(found["place"], found["y"], color=ink[0], label="robust mean")
    b.set(xlabel="stray point $x_6$", title="answer $y(x)$")
    b.legend(fontsize=8)
    c.axhline(1 / 6, linestyle="--", color=ink[1])
    c.plot(found["place"], found["slope"][:, -1], color=ink[0])
    c.set(xlabel="stray point $x_6$", title=r"its derivative $\partial y / \partial x_6$", ylim=(0, 0.26))
    return figure


if __name__ == "__main__":
    present(study, say, draw)
