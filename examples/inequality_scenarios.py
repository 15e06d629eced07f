"""Three scenarios for one inequality: the solution lies inside, is held at the boundary, or only touches it."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

Q = torch.tensor([[1.0, 0.4], [0.4, 0.6]], dtype=torch.float64)
disc = tacit.Problem(
    objective=lambda x, u: 0.5 * (u - x) @ Q @ (u - x),
    inequality=lambda x, u: u.square().sum()[None] - 1,
)
CENTRES = torch.tensor([[-0.55, -0.2], [1.5, 0.5], [-0.28, 0.96]], dtype=torch.float64)
LABELS = ((28, 0), (-16, -4), (22, 12))
ALONG = torch.tensor([-0.28, 0.96], dtype=torch.float64)


def study(fast: bool) -> dict[str, Any]:
    """Solve for three centres of the objective, and along a ray that leaves the disc."""
    s = tacit.solve(disc, CENTRES, start=torch.zeros_like(CENTRES))
    report = tacit.regularity(disc, CENTRES, y=s.y)
    slopes = {
        weak: tacit.jacobian(disc, CENTRES, y=s.y, gradient=tacit.Implicit(weak=weak, on_failure="ignore"))
        for weak in ("active", "inactive")
    }
    reach = torch.linspace(0.5, 1.6, 23 if fast else 89, dtype=torch.float64)
    x = reach[:, None] * ALONG
    y = tacit.solve(disc, x, start=torch.zeros_like(x)).y
    speed = (tacit.jacobian(disc, x, y=y) @ ALONG).norm(dim=1)
    return {"s": s, "flags": report.flags, "slopes": slopes, "reach": reach, "speed": speed}


def say(found: dict[str, Any]) -> str:
    """The scenarios in numbers."""
    s, slopes = found["s"], found["slopes"]
    lines = []
    for k, word in enumerate(("inside", "held", "touching")):
        flag = tacit.Flag(int(found["flags"][k])).name or "none"
        lines.append(
            f"{word:>8}: y = ({s.y[k, 0]:5.2f}, {s.y[k, 1]:5.2f})   g = {s.y[k].square().sum() - 1:8.1e}   "
            f"lambda = {s.inequality[k, 0] + 0.0:5.2f}   flag: {flag}"
        )
        for weak in ("active", "inactive") if k == 2 else ("active",):
            rows = ", ".join(f"({a:5.2f}, {b:5.2f})" for a, b in slopes[weak][k].tolist())
            lines.append(f"{'':>10}Dy = [{rows}]" + (f"   with weak='{weak}'" if k == 2 else ""))
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The disc with level lines of the three objectives, and the length of Dy along a ray."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.8, 3.6), width_ratios=(1.25, 1))
    angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    ring = torch.stack([angle.cos(), angle.sin()])
    a.fill(*ring, color=ink.faint, alpha=0.35)
    a.plot(*ring, color=ink.text, linewidth=1)
    bend = torch.linalg.inv(torch.linalg.cholesky(Q)).T
    for k, (x, y) in enumerate(zip(CENTRES, found["s"].y)):
        touching = ((y - x) @ Q @ (y - x)).sqrt()
        for size in (0.14, float(touching)) if k == 1 else (0.14, 0.28):
            a.plot(*(x[:, None] + size * bend @ ring), color=ink[k], linewidth=0.8)
        a.plot(*x, "+", color=ink[k])
        a.plot(*y, "o", color=ink[k])
        a.annotate(f"$y_{k + 1}$", y, xytext=LABELS[k], textcoords="offset points", color=ink[k])
    y, pull = found["s"].y[1], -Q @ (found["s"].y[1] - CENTRES[1])
    a.annotate("", y + 0.6 * pull, y, arrowprops={"arrowstyle": "-|>", "color": ink[1], "shrinkA": 0, "shrinkB": 0})
    a.annotate(r"$-\mathrm{D}_Y f$", y + 0.6 * pull, xytext=(-30, 8), textcoords="offset points", color=ink[1])
    a.set(aspect="equal", xticks=[], yticks=[], title="inside, held, touching")
    a.spines[:].set_visible(False)
    inside = found["reach"] < 1 - 1e-9
    for side, end, fill in ((inside, -1, "none"), (~inside, 0, ink[2])):
        b.plot(found["reach"][side], found["speed"][side], color=ink[2])
        b.plot(1, found["speed"][side][end], "o", color=ink[2], markerfacecolor=fill)
    b.axvline(1, linestyle=":", color=ink.text, linewidth=1)
    b.set(xlabel="$|x|$ on the ray through $y_3$", title=r"$|\mathrm{D}y\,d|$ jumps at the boundary", ylim=(0, 1.1))
    return figure


if __name__ == "__main__":
    present(study, say, draw)
