"""The geometry of the constrained gradient: bend space until the curvature is round, project, bend back."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit
from tacit.implicit.geometric import geometric, power

Q = torch.tensor([[2.2, 0.9], [0.9, 0.8]], dtype=torch.float64)
PULL = torch.tensor([0.9, 1.9], dtype=torch.float64)


def place(x: torch.Tensor) -> torch.Tensor:
    """Where the objective of a scalar x has its minimum without the constraint."""
    return torch.stack([0.6 + x, PULL[1] - 0.2 * x])


def declared(growth: float) -> tacit.Problem:
    """A quadratic objective on a circle, whose radius may grow with x."""
    return tacit.Problem(
        objective=lambda x, u: 0.5 * (u - place(x)) @ Q @ (u - place(x)),
        equality=lambda x, u: u.square().sum()[None] - (1 + growth * x).square(),
    )


def study(fast: bool) -> dict[str, Any]:
    """Dy by the engine and by the geometric formula, for a circle that stays and one that grows."""
    x = torch.tensor([0.3], dtype=torch.float64)
    found: dict[str, Any] = {"x": x}
    for name, growth in (("fixed", 0.0), ("growing", 0.2)):
        s = tacit.solve(declared(growth), x, start=torch.tensor([[0.5, 0.9]], dtype=torch.float64))
        y, lam = s.y[0], s.equality[0, 0]
        H = Q - 2 * lam * torch.eye(2, dtype=torch.float64)
        a = 2 * y
        b = -Q @ torch.tensor([1.0, -0.2], dtype=torch.float64)
        c = torch.tensor(-2 * growth * (1 + growth * float(x)), dtype=torch.float64)
        found[name] = {
            "y": y,
            "H": H,
            "a": a,
            "free": -torch.linalg.solve(H, b),
            "Dy": tacit.jacobian(declared(growth), x, y=s.y)[0],
            "formula": geometric(H[None], a[None], b[None], c[None])[0],
        }
    return found


def say(found: dict[str, Any]) -> str:
    """Both derivatives, and what the constraint leaves of them."""
    lines = []
    for name in ("fixed", "growing"):
        at = found[name]
        lines.append(
            f"{name:>7} circle: unconstrained ({at['free'][0]:.4f}, {at['free'][1]:.4f}), Dy "
            f"({at['Dy'][0]:.4f}, {at['Dy'][1]:.4f}), the formula ({at['formula'][0]:.4f}, {at['formula'][1]:.4f}); "
            f"a'Dy = {at['a'] @ at['Dy']:.4f}"
        )
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """As it is, and bent by H^(1/2), where the correction is a right angle."""
    import matplotlib.pyplot as plt

    at = found["fixed"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.0))
    angle = torch.linspace(-0.5, 2.6, 120, dtype=torch.float64)
    arc = torch.stack([angle.cos(), angle.sin()])
    turn = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    ring = power(at["H"][None], -0.5)[0] @ torch.stack([turn.cos(), turn.sin()])
    tangent = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64) @ at["y"]
    bend = power(at["H"][None], 0.5)[0]
    for panel, M, title in ((left, torch.eye(2).double(), "as it is"), (right, bend, "bent by $H^{1/2}$")):
        y = M @ at["y"]
        a, b = y.tolist()
        panel.plot(*(M @ arc), color=ink.text, linewidth=1)
        panel.plot(*(y[:, None] + M @ (0.8 * ring)), color=ink.faint, linewidth=1)
        line = y[:, None] + (M @ tangent)[:, None] * torch.tensor([-0.9, 0.9])
        panel.plot(*line, ":", color=ink.text, linewidth=1)
        for key, word, colour, off in (
            ("free", r"$\mathrm{D}y_{unc}$", ink[1], (4, 2)),
            ("Dy", r"$\mathrm{D}y$", ink[0], (-19, -9)),
        ):
            tip = y + M @ at[key]
            panel.annotate("", tip, y, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0})
            panel.annotate(word, tip, xytext=off, textcoords="offset points", color=colour)
        ends = torch.stack([y + M @ at["free"], y + M @ at["Dy"]]).T
        panel.plot(*ends, "--", color=ink[2], linewidth=1)
        panel.plot(*y, "o", color=ink.text, markersize=4)
        panel.set(aspect="equal", xticks=[], yticks=[], title=title)
        panel.set(xlim=(a - 1.5, a + 1.0), ylim=(b - 0.9, b + 0.9))
        panel.spines[:].set_visible(False)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
