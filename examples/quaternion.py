"""A singular Hessian: u points along x, its length is free; three remedies, drawn in the plane, measured in four dimensions."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

aligned = tacit.Problem(objective=lambda x, u: -(x @ u) / u.norm())
unit = tacit.Problem(objective=lambda x, u: -(x @ u), equality=lambda x, u: u.square().sum()[None] - 1)
X = torch.tensor([[0.9, -0.2, 0.5, 0.4]], dtype=torch.float64)


def study(fast: bool) -> dict[str, Any]:
    """Dy of least norm at several lengths of y, that of the proximal problem, and that with |u| = 1."""
    direction = X / X.norm()
    spherical = torch.eye(4, dtype=torch.float64) - direction.T @ direction
    found: dict[str, Any] = {"flags": {}, "errors": {}}
    for length in (0.5, 1.0, 2.0):
        y = length * direction
        Dy = tacit.jacobian(aligned, X, y=y)[0]
        found["flags"][length] = tacit.Flag(int(tacit.regularity(aligned, X, y=y).flags)).name
        found["errors"][length] = float((Dy - length / X.norm() * spherical).norm())
    on_sphere = tacit.jacobian(unit, X, y=direction)[0]
    report = tacit.regularity(unit, X, y=direction)
    found["sphere"] = (int(report.flags), float((on_sphere - spherical / X.norm()).norm()))
    deltas = torch.logspace(-8, -1, 3 if fast else 22, dtype=torch.float64)
    least = tacit.jacobian(aligned, X, y=direction)[0]
    found["deltas"] = deltas
    found["proximal"] = torch.stack(
        [
            (tacit.jacobian(aligned, X, y=direction, gradient=policy)[0] - least).norm() / least.norm()
            for policy in (tacit.Implicit(singular="proximal", delta=float(d)) for d in deltas)
        ]
    )
    plane = torch.tensor([[0.8, 0.6]], dtype=torch.float64)
    places = torch.tensor([[0.5], [1.0], [1.5]], dtype=torch.float64) * plane
    found["plane"], found["places"] = plane[0], places
    found["columns"] = tacit.jacobian(aligned, plane.expand(3, 2), y=places)[:, :, 1]
    return found


def say(found: dict[str, Any]) -> str:
    """What is flagged, and how far each remedy is from the paper's formula."""
    lines = [
        f"|y| = {length:.1f}: flag {found['flags'][length]}, least-norm Dy is off the formula by {error:.0e}"
        for length, error in found["errors"].items()
    ]
    flags, error = found["sphere"]
    lines.append(f"|u| = 1 as a constraint: flags {flags}, Dy is off the formula by {error:.0e}")
    for k in (0, len(found["deltas"]) // 2):
        lines.append(f"proximal, delta = {found['deltas'][k]:.0e}: relative distance {found['proximal'][k]:.0e}")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Level lines of the objective in the plane with one column of Dy, and the proximal error."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.6, 3.0))
    for angle in torch.arange(0, 2 * torch.pi, torch.pi / 12):
        tip = torch.stack([angle.cos(), angle.sin()])
        a.plot([0.05 * tip[0], 3 * tip[0]], [0.05 * tip[1], 3 * tip[1]], color=ink.faint, linewidth=0.7)
    a.plot([0, 2 * found["plane"][0]], [0, 2 * found["plane"][1]], color=ink[0], linewidth=2)
    for y, column in zip(found["places"], found["columns"]):
        a.annotate(
            "", y + 0.6 * column, y, arrowprops={"arrowstyle": "-|>", "color": ink[1], "shrinkA": 0, "shrinkB": 0}
        )
        along = torch.tensor([-0.35, 0.35], dtype=torch.float64)[:, None] * found["plane"]
        a.plot(*(y + 0.6 * column + along).T, ":", color=ink[1], linewidth=1)
        a.plot(*y, "o", color=ink[0], markersize=4)
    a.set(aspect="equal", xlim=(-0.4, 2.0), ylim=(-0.3, 1.7), xticks=[], yticks=[])
    a.set_title("level lines; every $y$ along $x$ is a minimum")
    a.spines[:].set_visible(False)
    b.loglog(found["deltas"], found["proximal"], ".-", color=ink[2])
    b.set(xlabel=r"$\delta$", title=r"proximal $\mathrm{D}y$, distance from the least-norm one")
    return figure


if __name__ == "__main__":
    present(study, say, draw)
