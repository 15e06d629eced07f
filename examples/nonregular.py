"""Non-regular points: more active rows than unknowns, a row stated twice, rows that touch. All are flagged."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

NORMALS = torch.tensor([[-0.9, 1.0], [0.1, 1.0], [0.8, 1.0]], dtype=torch.float64)

CASES = {
    "overdetermined": tacit.Problem(  # three half-planes with one common corner x, which u climbs into
        objective=lambda x, u: -u[1],
        inequality=lambda x, u: NORMALS @ (u - x),
    ),
    "rank deficient": tacit.Problem(  # one condition, stated twice
        objective=lambda x, u: 0.5 * (u - x).square().sum(),
        equality=lambda x, u: torch.stack([u.sum() - 1, 2 * u.sum() - 2]),
    ),
    "tangent": tacit.Problem(  # a disc within a disc, which touch at (1, 0)
        objective=lambda x, u: 0.5 * (u - x).square().sum(),
        inequality=lambda x, u: torch.stack(
            [u.square().sum() - 1, (u - u.new_tensor([0.5, 0.0])).square().sum() - 0.25]
        ),
    ),
}
INPUTS = {"overdetermined": (0.2, 0.6), "rank deficient": (1.4, 0.9), "tangent": (2.0, 0.0)}
STARTS = {"overdetermined": (0.2, 0.0), "rank deficient": (0.0, 0.0), "tangent": (0.5, 0.0)}


def study(fast: bool) -> dict[str, Any]:
    """Dy with its flags beside central differences of the answer."""
    found: dict[str, Any] = {}
    quick = {"on_failure": "ignore"}
    for name, problem in CASES.items():
        x, start = (torch.tensor([given[name]], dtype=torch.float64) for given in (INPUTS, STARTS))
        s = tacit.solve(problem, x, start=start, **quick)
        step = 1e-4 * torch.eye(2, dtype=torch.float64)
        beside = torch.cat([x + step, x - step])
        ends = tacit.solve(problem, beside, start=start.expand(4, 2), **quick).y
        report = tacit.regularity(problem, x, y=s.y)
        found[name] = {
            "x": x[0],
            "y": s.y[0],
            "Dy": tacit.jacobian(problem, x, y=s.y)[0],
            "differences": ((ends[:2] - ends[2:]) / 2e-4).T,
            "multipliers": torch.cat([s.equality, s.inequality], dim=1)[0],
            "flags": tacit.Flag(int(report.flags)),
            "rank": int(report.rank),
        }
    return found


def say(found: dict[str, Any]) -> str:
    """Row by row: what is flagged, what the gradient is, what the differences say."""
    lines = []
    for name, at in found.items():
        lam = ", ".join(f"{v + 0.0:.2f}" for v in at["multipliers"].tolist())
        lines.append(
            f"{name}: {len(at['multipliers'])} rows of rank {at['rank']}, lambda = ({lam}), flag: {at['flags'].name}"
        )
        for word, key in (("Dy", "Dy"), ("differences", "differences")):
            rows = ", ".join(f"({a + 0.0:6.3f}, {b + 0.0:6.3f})" for a, b in at[key].tolist())
            lines.append(f"{word:>14} = [{rows}]")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The active rows at each point."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.0))
    angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    t = torch.linspace(-3, 3, 2, dtype=torch.float64)
    for panel, (name, at) in zip(axes, found.items()):
        x, y = at["x"], at["y"]
        if name == "overdetermined":
            for k, n in enumerate(NORMALS):
                panel.plot(x[0] + t * n[1], x[1] - t * n[0], color=ink[k])
            panel.annotate("", y + torch.tensor([0, 0.7]), y, arrowprops={"arrowstyle": "-|>", "color": ink.text})
        elif name == "rank deficient":
            panel.plot(t, 1 - t, color=ink[0], linewidth=4, alpha=0.4)
            panel.plot(t, 1 - t, color=ink[1], linewidth=1)
        else:
            panel.plot(angle.cos(), angle.sin(), color=ink[0])
            panel.plot(0.5 + 0.5 * angle.cos(), 0.5 * angle.sin(), color=ink[1])
        if name != "overdetermined":
            panel.plot(*x, "+", color=ink.text)
            panel.plot(*torch.stack([x, y]).T, ":", color=ink.text, linewidth=1)
        panel.plot(*y, "o", color=ink.text, markersize=5)
        panel.set(aspect="equal", xlim=(-1.3, 2.3), ylim=(-1.4, 1.7), xticks=[], yticks=[], title=name)
        panel.spines[:].set_visible(False)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
