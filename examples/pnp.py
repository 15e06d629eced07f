"""Pose from points: matches between a map and an image, many of them wrong, and a network that learns to weigh them."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present
from learning import Trust, train
from measuring import beside_unrolled, table

import tacit

MATCHES, SCALE = 24, 0.02
"""Matches a scene, and the error in the image beyond which a match counts as odd."""


def rotation(w: torch.Tensor) -> torch.Tensor:
    """The rotation by |w| about w, (3, 3)."""
    zero = torch.zeros_like(w[0])
    rows = torch.stack([zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero])
    return torch.linalg.matrix_exp(rows.reshape(3, 3))


def errors(world: torch.Tensor, image: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """How far each point of the map is seen from its match, (n, 2), in units of SCALE; u holds rotation and shift."""
    seen = world @ rotation(u[:3]).T + u[3:]
    return (seen[:, :2] / seen[:, 2:].clamp_min(0.1) - image) / SCALE


def objective(world: torch.Tensor, image: torch.Tensor, weight: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Weighted pseudo-Huber penalty of the errors."""
    return (weight * ((1 + errors(world, image, u).square().sum(1)).sqrt() - 1)).sum()


pose = tacit.Problem(objective)


def scenes(count: int, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Map, image, hints for each match, true pose, and the pose a moment before; 40 % of the matches are wrong."""
    spread, middle = torch.tensor([[0.5, 0.5, 0.5, 0.3, 0.3, 0.3], [0, 0, 0, 0, 0, 5]], dtype=torch.float64)
    u = middle + spread * torch.randn(count, 6, dtype=torch.float64, generator=generator)
    world = 2 * torch.rand(count, MATCHES, 3, dtype=torch.float64, generator=generator) - 1
    image = SCALE * torch.vmap(errors)(world, torch.zeros_like(world[..., :2]), u)
    image = image + 0.004 * torch.randn(image.shape, dtype=torch.float64, generator=generator)
    wrong = torch.rand(count, MATCHES, dtype=torch.float64, generator=generator) < 0.4
    shuffled = image[:, torch.randperm(MATCHES, generator=generator)]
    image = torch.where(wrong[..., None], shuffled, image)
    hints = torch.randn(count, MATCHES, 3, dtype=torch.float64, generator=generator)
    hints[..., 0] += torch.where(wrong, -1.2, 1.2)
    hints[..., 1] += torch.where(wrong, 1.0, -1.0) * hints[..., 2].sign()
    before = u + 0.05 * torch.randn(u.shape, dtype=torch.float64, generator=generator)
    return world, image, hints, u, before


def gauss_newton(
    world: torch.Tensor, image: torch.Tensor, weight: torch.Tensor, u: torch.Tensor, steps: int
) -> torch.Tensor:
    """The alternative: re-weighted Gauss-Newton steps, differentiated one by one."""

    def step(world: torch.Tensor, image: torch.Tensor, weight: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        r, J = errors(world, image, u), torch.func.jacrev(errors, 2)(world, image, u)
        w = (weight / (1 + r.square().sum(1)).sqrt())[:, None]
        J, wJ = J.flatten(0, 1), (w[..., None] * J).flatten(0, 1)
        return u - torch.linalg.solve(J.T @ wJ, wJ.T @ r.flatten())

    for _ in range(steps):
        u = torch.vmap(step)(world, image, weight, u)
    return u


def study(fast: bool) -> dict[str, Any]:
    """Train the weights by the error of the pose; the cost of the layer beside unrolled Gauss-Newton."""
    generator = torch.Generator().manual_seed(0)
    world, image, hints, u, before = scenes(64, generator)
    trust = Trust()

    def loss() -> torch.Tensor:
        world, image, hints, u, before = scenes(16, generator)
        y = tacit.argmin(pose, world, image, trust(hints), start=before)
        return (y - u).square().sum(1).mean()

    found: dict[str, Any] = {"losses": train(trust.parameters(), loss, 2 if fast else 120, 0.02)}
    with torch.no_grad():
        weight = trust(hints)
        for name, w in (("equal", torch.ones_like(weight)), ("learned", weight)):
            y = tacit.solve(pose, world, image, w, start=before).y
            found[name] = (y - u)[:, :3].norm(dim=1).rad2deg()
    some = weight[:16].clone().requires_grad_()
    given = (world[:16], image[:16], some)

    found["rows"] = beside_unrolled(
        lambda: (tacit.argmin(pose, *given, start=before[:16]) - u[:16]).square().sum(),
        lambda steps: (gauss_newton(*given, before[:16], steps) - u[:16]).square().sum(),
        (5,) if fast else (5, 10, 20, 40),
        some,
    )
    return found


def say(found: dict[str, Any]) -> str:
    """Errors of the rotation, and costs."""
    lines = []
    for name in ("equal", "learned"):
        lines.append(
            f"{name:>7} weights: error of the rotation, median {found[name].median():.2f} degrees, "
            f"upper decile {found[name].quantile(0.9):.2f}"
        )
    return "\n".join([*lines, *table(found["rows"])])


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Errors of new scenes in order, and the loss."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.8, 3.0))
    for k, name in enumerate(("learned", "equal")):
        error = found[name].sort().values
        a.semilogx(error, torch.linspace(0, 1, len(error)), color=ink[k], label=f"{name} weights")
    a.set(xlabel="error of the rotation, degrees", title="share of new scenes below")
    a.legend()
    b.semilogy(found["losses"], color=ink[0])
    b.set(xlabel="step", title="squared error of the pose")
    return figure


if __name__ == "__main__":
    present(study, say, draw)
