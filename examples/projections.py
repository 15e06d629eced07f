"""Projections onto the spheres of three norms: the nearest point, and the two derivatives of the paper's table."""

from __future__ import annotations

import math
from typing import Any

import torch
from drawing import Ink, present

from tacit.nn.functional import lp_sphere

NORMS = {"2": 2.0, "1": 1.0, r"\infty": math.inf}
NAMES = {"2": "L2", "1": "L1", r"\infty": "Linf"}
POINT = torch.tensor([2.0, 0.75], dtype=torch.float64)
HEIGHT = 1.5  # of the line along which the derivative is shown


def derivative(x: torch.Tensor, p: float, plateau: str) -> torch.Tensor:
    """The Jacobians (b, 2, 2) of the projection at rows of x."""
    x = x.clone().requires_grad_()
    y = lp_sphere(x, p, plateau=plateau)
    return torch.stack([torch.autograd.grad(y[:, i].sum(), x, retain_graph=True)[0] for i in range(2)], 1)


def study(fast: bool) -> dict[str, Any]:
    """Project one point and a crowd, and follow dy2/dx2 as x moves along a line."""
    along = torch.linspace(0.01, 3.5, 50 if fast else 400, dtype=torch.float64)
    line = torch.stack([along, torch.full_like(along, HEIGHT)], 1)
    angle = torch.linspace(0, 2 * torch.pi, 8 * 60 + 1, dtype=torch.float64)
    found: dict[str, Any] = {"along": along}
    for name, p in NORMS.items():
        # A ray from the centre meets the sphere at 1 / ||direction||; corners lie at multiples of 45 degrees.
        circle = torch.stack([angle.cos(), angle.sin()], 1)
        found[f"sphere {name}"] = circle / torch.linalg.vector_norm(circle, ord=p, dim=1, keepdim=True)
        found[f"y {name}"] = lp_sphere(POINT, p)
        for plateau in ("zero", "printed"):
            found[f"{plateau} {name}"] = derivative(line, p, plateau)[:, 1, 1]
            found[f"{plateau} at x {name}"] = derivative(POINT[None], p, plateau)[0]
    return found


def matrix(m: torch.Tensor) -> str:
    """A small matrix on one line."""
    return "[" + ", ".join("[" + ", ".join(f"{v + 0.0:6.3f}" for v in row.tolist()) + "]" for row in m) + "]"


def say(found: dict[str, Any]) -> str:
    """The table of the paper at its own example, x = (2, 0.75)."""
    lines = [f"{'':5} {'y':15} {'D^z y, plateau=zero':36} Dy, plateau=printed"]
    for name in NORMS:
        y = "(" + ", ".join(f"{v:.3f}" for v in found[f"y {name}"].tolist()) + ")"
        zero, printed = (matrix(found[f"{plateau} at x {name}"]) for plateau in ("zero", "printed"))
        lines.append(f"{NAMES[name]:5} {y:15} {zero:36} {printed}")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The three projections of the paper's point; below each, the derivative of y2 in x2 along a line above the sphere."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(7.6, 4.3), height_ratios=(1.6, 1))
    for top, bottom, name in zip(*axes, NORMS):
        y, distance = found[f"y {name}"], (POINT - found[f"y {name}"]).norm()
        for k in range(2, 7):  # level sets of the objective
            top.add_patch(plt.Circle(POINT.tolist(), 0.05 * k * k, fill=False, color=ink.faint, linewidth=0.8))
        top.add_patch(plt.Circle(POINT.tolist(), distance, fill=False, color=ink[1], linestyle="--", linewidth=1.2))
        top.plot(*found[f"sphere {name}"].T, color=ink[0])
        top.plot(*torch.stack([POINT, y]).T, ":", color=ink.text, linewidth=1)
        for point, label, side in ((POINT, "$x$", (3, 5)), (y, f"$y_{{{name}}}$", (-17, -4))):
            top.plot(*point, "o", color=ink.text, markersize=4)
            top.annotate(label, point, xytext=side, textcoords="offset points", fontsize=11)
        top.axhline(HEIGHT, color=ink[2], linewidth=1, alpha=0.6)
        top.set(aspect="equal", xlim=(-1.5, 3.5), ylim=(-1.5, 2), xticks=[-1, 0, 1, 2, 3], yticks=[-1, 0, 1])
        top.set_title(f"$\\|u\\|_{{{name}}} = 1$")
        bottom.plot(found["along"], found[f"zero {name}"], color=ink[0], label='"zero"')
        bottom.plot(found["along"], found[f"printed {name}"], "--", color=ink[1], label='"printed"')
        bottom.set(xlabel=f"$x_1$, with $x_2 = {HEIGHT}$", ylim=(-0.1, 1.15), xlim=(0, 3.5))
    axes[1, 0].set_ylabel(r"$\partial y_2 / \partial x_2$")
    axes[1, 2].legend(loc="upper right")
    return figure


if __name__ == "__main__":
    present(study, say, draw)
