"""A robust line fit in a network: RANSAC finds the line, the implicit gradient teaches which points to trust."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present, trend
from learning import Trust, train
from measuring import beside_unrolled, table

import tacit

POINTS, WIDTH = 40, 0.15


def misfit(points: torch.Tensor, weight: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Welsch's penalty of the distances to the line `n'p = d`, u = (n, d); any batch in front."""
    apart = (points * u[..., None, :2]).sum(-1) - u[..., None, 2]
    return (weight * (1 - (-0.5 * (apart / WIDTH).square()).exp())).sum(-1)


line = tacit.Problem(
    objective=misfit,
    equality=lambda points, weight, u: u[:2].square().sum()[None] - 1,
)


def ransac(points: torch.Tensor, weight: torch.Tensor, tries: int = 200) -> torch.Tensor:
    """The best of many lines through two points each, drawn with their weights as odds, then brought to the very minimum."""
    generator = torch.Generator().manual_seed(0)
    pick = torch.multinomial(weight + 1e-3, 2 * tries, replacement=True, generator=generator)
    p, q = points.take_along_dim(pick[..., None], 1).chunk(2, dim=1)
    n = torch.nn.functional.normalize(torch.stack([q[..., 1] - p[..., 1], p[..., 0] - q[..., 0]], dim=-1), dim=-1)
    lines = torch.cat([n, (n * p).sum(-1, keepdim=True)], dim=-1)
    best = misfit(points[:, None], weight[:, None], lines).argmin(1)
    near = settle(points, weight, lines.take_along_dim(best[:, None, None], 1)[:, 0], 20)
    return tacit.solve(line, points, weight, start=near).y


def settle(points: torch.Tensor, weight: torch.Tensor, u: torch.Tensor, steps: int) -> torch.Tensor:
    """Fit again and again with the weights that the last line gives."""
    for _ in range(steps):
        apart = (points * u[:, None, :2]).sum(-1) - u[:, 2:]
        w = weight * (-0.5 * (apart / WIDTH).square()).exp()
        middle = (w[..., None] * points).sum(1) / w.sum(1, keepdim=True)
        away = points - middle[:, None]
        n = torch.linalg.eigh((w[..., None] * away).mT @ away)[1][:, :, 0]
        u = torch.cat([n, (n * middle).sum(1, keepdim=True)], dim=1)
    return u


def scenes(count: int, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Points `(b, 40, 2)` of a line, of a denser wrong line and of none; a look `(b, 40, 3)` of each; the line."""
    angle = torch.pi * torch.rand(count, 2, dtype=torch.float64, generator=generator)
    n = torch.stack([angle.cos(), angle.sin()], dim=-1)
    d = torch.rand(count, 2, dtype=torch.float64, generator=generator) - 0.5
    along = 3 * torch.rand(count, POINTS, 1, dtype=torch.float64, generator=generator) - 1.5
    kind = torch.tensor([0] * 12 + [1] * 16 + [2] * 12)
    side = kind.clamp_max(1)
    on = d[:, side, None] * n[:, side] + along * torch.stack([-n[:, side, 1], n[:, side, 0]], dim=-1)
    on = on + 0.05 * torch.randn(on.shape, dtype=torch.float64, generator=generator)
    anywhere = 3 * torch.rand(on.shape, dtype=torch.float64, generator=generator) - 1.5
    points = torch.where((kind == 2)[:, None], anywhere, on)
    look = torch.randn(count, POINTS, 3, dtype=torch.float64, generator=generator)
    look[..., 0] = look[..., 0] * 0.6 + torch.where(kind == 0, 1.0, -1.0) * look[..., 1].sign()
    return points, look, n[:, 0], kind


def slant(u: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """The squared sine of the angle between the lines and the right ones."""
    return 1 - (u[:, :2] * n).sum(1).square()


def study(fast: bool) -> dict[str, Any]:
    """Train the weights through the fit; angles before and after; the cost beside unrolled re-weighting."""
    generator = torch.Generator().manual_seed(0)
    points, look, n, kind = scenes(100, generator)
    trust = Trust()

    def loss() -> torch.Tensor:
        points, look, n, _ = scenes(16, generator)
        return slant(tacit.argmin(line, points, trust(look), solver=ransac), n).mean()

    found: dict[str, Any] = {"points": points, "kind": kind}
    found["losses"] = train(trust.parameters(), loss, 3 if fast else 150, 0.02)
    with torch.no_grad():
        weight = trust(look)
        for name, w in (("equal", torch.ones_like(weight)), ("learned", weight)):
            u = ransac(points, w)
            found[name] = {"u": u, "angle": slant(u, n).clamp_min(0).sqrt().asin().rad2deg(), "weight": w}
    some = weight[:16].clone().requires_grad_()
    start = ransac(points[:16], some.detach())
    found["rows"] = beside_unrolled(
        lambda: slant(tacit.argmin(line, points[:16], some, solver=ransac), n[:16]).sum(),
        lambda steps: slant(settle(points[:16], some, start, steps), n[:16]).sum(),
        (3,) if fast else (3, 10, 30),
        some,
    )
    return found


def say(found: dict[str, Any]) -> str:
    """Angles, and costs."""
    near = {name: 100 * (found[name]["angle"] < 5).double().mean() for name in ("equal", "learned")}
    lines = [f"{name:>7} weights: {share:.0f} % of 100 new lines within 5 degrees" for name, share in near.items()]
    return "\n".join([*lines, *table(found["rows"])])


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """A scene where the weights make the difference, and the loss."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(8.6, 2.9))
    k = int((found["equal"]["angle"] - found["learned"]["angle"]).argmax())
    colours = [(ink[0], ink[1], ink.text)[kind] for kind in found["kind"]]
    t = torch.tensor([-3.0, 3.0], dtype=torch.float64)
    for panel, name in zip(axes, ("equal", "learned")):
        sizes = 4 + 26 * found[name]["weight"][k] / found[name]["weight"][k].max()
        panel.scatter(*found["points"][k].T, s=sizes, c=colours, linewidths=0)
        u = found[name]["u"][k]
        panel.plot(u[2] * u[0] - t * u[1], u[2] * u[1] + t * u[0], color=ink[2])
        panel.set(xlim=(-1.8, 1.8), ylim=(-1.8, 1.8), aspect="equal", xticks=[], yticks=[], title=f"{name} weights")
    trend(axes[2], found["losses"], ink[0])
    axes[2].set(xlabel="step", title="squared sine of the angle")
    return figure


if __name__ == "__main__":
    present(study, say, draw)
