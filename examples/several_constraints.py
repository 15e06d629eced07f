"""Several constraints at once: each active row takes one dimension away from what the output can follow."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

REACH = 0.3
"""How far u may be from the middle of the triangle, squared."""

part = tacit.Problem(
    objective=lambda x, u: 0.5 * (u - x).square().sum(),
    equality=lambda x, u: u.sum()[None] - 1,
    inequality=lambda x, u: torch.cat([-u, (u - 1 / 3).square().sum()[None] - REACH]),
)
CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.866]], dtype=torch.float64)


def study(fast: bool) -> dict[str, Any]:
    """Project points of the plane u_1 + u_2 + u_3 = 1 onto what the triangle and the disc have in common."""
    count = 60 if fast else 260
    generator = torch.Generator().manual_seed(4)
    plane = torch.rand(count, 2, dtype=torch.float64, generator=generator) * 1.9 - 0.45
    full = torch.cat([CORNERS, torch.ones(3, 1, dtype=torch.float64)], dim=1).T
    x = torch.linalg.solve(full, torch.cat([plane, torch.ones(count, 1, dtype=torch.float64)], dim=1).T).T
    s = tacit.solve(part, x, start=torch.full_like(x, 1 / 3))
    Dy = tacit.jacobian(part, x, y=s.y)
    return {
        "x": x,
        "y": s.y,
        "active": (s.inequality < -1e-7).sum(1),
        "rank": torch.linalg.matrix_rank(Dy, atol=1e-9, rtol=0.0),
        "lambda": s.inequality,
        "status": s.status,
        "flags": tacit.regularity(part, x, y=s.y).flags,
        "along": (Dy.sum(dim=1)).abs().max(),
    }


def say(found: dict[str, Any]) -> str:
    """The rank of Dy by the number of active inequalities."""
    lines = [
        f"{int((found['status'] == 0).sum())} of {len(found['x'])} solved, {int((found['flags'] == 0).sum())} regular"
    ]
    for k in range(3):
        ranks = found["rank"][found["active"] == k]
        lines.append(
            f"{k} inequalities active in {len(ranks):3d} samples: rank Dy = {', '.join(map(str, ranks.unique().tolist()))}"
        )
    lines.append(f"largest |sum of a column of Dy|: {found['along']:.0e}")
    lines.append(
        f"multipliers of the inequalities: from {found['lambda'].min():.2f} to {found['lambda'].max() + 0.0:.2f}"
    )
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """From each x to its y, coloured by the number of active inequalities."""
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(6.0, 4.6))
    angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    middle = CORNERS.mean(0)
    radius = (REACH / 2) ** 0.5  # barycentric lengths are sqrt(2) of those on this page
    panel.fill(*CORNERS.T, color=ink.faint, alpha=0.3)
    panel.plot(middle[0] + radius * angle.cos(), middle[1] + radius * angle.sin(), color=ink.text, linewidth=0.8)
    panel.plot(*CORNERS[[0, 1, 2, 0]].T, color=ink.text, linewidth=0.8)
    a, b = found["x"] @ CORNERS, found["y"] @ CORNERS
    for k, word in enumerate(("none active", "one active", "two active")):
        pick = found["active"] == k
        lines = torch.stack([a[pick], b[pick], torch.full_like(a[pick], torch.nan)], dim=1).reshape(-1, 2)
        panel.plot(*lines.T, color=ink[k], linewidth=0.7)
        panel.plot(*b[pick].T, "o", color=ink[k], markersize=3, label=word)
    panel.set(aspect="equal", xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    figure.legend(loc="outside upper center", fontsize=8, ncols=3)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
