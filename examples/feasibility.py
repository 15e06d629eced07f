"""Feasibility: where a point is, from its distances to beacons; no objective, only constraints."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from drawing import Ink, present

import tacit

BEACONS = torch.tensor([[-1.0, 0.0], [1.2, 0.4], [0.1, 1.6]], dtype=torch.float64)
HERE = torch.tensor([0.1, -0.9], dtype=torch.float64)


def declared(count: int) -> tacit.Problem:
    """Find u at the squared distances x from the first `count` beacons."""
    return tacit.Problem(objective=None, equality=lambda x, u: (u - BEACONS[:count]).square().sum(1) - x.square())


def study(fast: bool) -> dict[str, Any]:
    """Dy with one beacon (a family of answers), two (isolated answers), three (more equations than unknowns)."""
    found: dict[str, Any] = {}
    for count in (1, 2, 3):
        x = (HERE - BEACONS[:count]).norm(dim=1)[None]
        s = tacit.solve(declared(count), x, start=HERE[None] + 0.1)
        Dy = tacit.jacobian(declared(count), x, y=s.y)[0]
        A = 2 * (s.y[0] - BEACONS[:count])
        C = -2 * torch.diag(x[0])
        found[str(count)] = {
            "x": x[0],
            "y": s.y[0],
            "Dy": Dy,
            "flags": tacit.Flag(int(tacit.regularity(declared(count), x, y=s.y).flags)),
            "left": (A @ Dy + C).norm(),
        }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = torch.tensor([[0.3, 0.4]], dtype=torch.float64)  # circles that do not meet
        found["apart"] = tacit.solve(declared(2), x, start=HERE[None]).status
        found["warning"] = str(caught[0].message).split(". ")[0]
    return found


def say(found: dict[str, Any]) -> str:
    """Derivatives, flags, and what is left of A Dy + C."""
    lines = []
    for count in ("1", "2", "3"):
        at = found[count]
        rows = "; ".join(" ".join(f"{v:6.3f}" for v in row) for row in at["Dy"].tolist())
        lines.append(
            f"{count} beacons: Dy = [{rows}]   |A Dy + C| = {at['left']:.1e}   flag: {at['flags'].name or 'none'}"
        )
    lines.append(f"circles that do not meet: {tacit.Status(int(found['apart'])).name}; {found['warning']}")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Circles about the beacons, and where y goes when a distance grows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.2))
    angle = torch.linspace(0, 2 * torch.pi, 120, dtype=torch.float64)
    for panel, count in zip(axes, ("1", "2", "3")):
        at = found[count]
        for i in range(int(count)):
            c, r = BEACONS[i], at["x"][i]
            panel.plot(c[0] + r * angle.cos(), c[1] + r * angle.sin(), color=ink[i], linewidth=0.8)
            panel.plot(*c, "s", color=ink[i], markersize=4)
            tip = at["y"] + 0.8 * at["Dy"][:, i]
            panel.annotate(
                "", tip, at["y"], arrowprops={"arrowstyle": "-|>", "color": ink[i], "shrinkA": 0, "shrinkB": 0}
            )
        panel.plot(*at["y"], "o", color=ink.text, markersize=4)
        title = ("one beacon: least norm", "two beacons: unique", "three beacons: one row dropped")[int(count) - 1]
        panel.set(aspect="equal", xlim=(-2.7, 4.0), ylim=(-2.3, 4.4), xticks=[], yticks=[], title=title)
        panel.spines[:].set_visible(False)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
