"""A deep equilibrium model: one layer, iterated until nothing changes; memory does not know how often."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present
from learning import train
from measuring import beside_unrolled, table

import tacit

WIDTH = 24


class Equilibrium(tacit.Node):
    """z with z = tanh(W z + U x + b): a feasibility problem, so nothing but the constraint is declared."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.outer = torch.nn.Linear(2, WIDTH)

    def step(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """A contraction: the rows of W are kept to absolute sums of at most 0.95."""
        W = self.inner.weight / (self.inner.weight.abs().sum(1, keepdim=True) / 0.95).clamp_min(1)
        return torch.tanh(z @ W.T + self.outer(x))

    def equality(self, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return self.step(x, u) - u

    def solve(self, x: torch.Tensor) -> torch.Tensor:
        """Iterate on the whole batch; any other way to the fixed point would do."""
        z = x.new_zeros(len(x), WIDTH)
        for _ in range(500):
            before, z = z, self.step(x, z)
            if (z - before).abs().max() < 1e-7:
                break
        return z


def spirals(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of two spirals, and which one each belongs to."""
    which = (torch.rand(count, generator=generator) < 0.5).float()
    t = 0.4 + 2.2 * torch.rand(count, generator=generator)
    angle = 2.4 * t + torch.pi * which
    x = torch.stack([t * angle.cos(), t * angle.sin()], dim=1)
    return x + 0.08 * torch.randn(count, 2, generator=generator), which


def study(fast: bool) -> dict[str, Any]:
    """Train on two spirals; the cost of the gradient, implicit and unrolled."""
    generator = torch.Generator().manual_seed(0)
    node, head = Equilibrium(), torch.nn.Linear(WIDTH, 1)

    def loss() -> torch.Tensor:
        x, which = spirals(64, generator)
        return torch.nn.functional.binary_cross_entropy_with_logits(head(node(x))[:, 0], which)

    losses = train([*node.parameters(), *head.parameters()], loss, 5 if fast else 300, 0.02)
    ticks = torch.linspace(-3, 3, 25 if fast else 61)
    grid = torch.cartesian_prod(ticks, ticks)
    x, which = spirals(500, generator)
    with torch.no_grad():
        shade = torch.sigmoid(head(node(grid))).reshape(len(ticks), -1).T
        right = float(((head(node(x))[:, 0] > 0) == (which > 0.5)).double().mean())
        rate = [float((node.step(x, z) - z).norm()) for z in iterates(node, x, 40)]
    batch = spirals(64, generator)[0]
    rows = beside_unrolled(
        lambda: node(batch).square().sum(),
        lambda steps: list(iterates(node, batch, steps))[-1].square().sum(),
        (5, 20) if fast else (5, 20, 80, 320),
        node.inner.weight,
    )
    return {"losses": losses, "ticks": ticks, "shade": shade, "x": x[:150], "which": which[:150], "right": right,
            "rate": rate, "rows": rows}  # fmt: skip


def iterates(node: Equilibrium, x: torch.Tensor, steps: int) -> Any:
    """z after one step, two steps, and so on."""
    z = x.new_zeros(len(x), WIDTH)
    for _ in range(steps):
        z = node.step(x, z)
        yield z


def say(found: dict[str, Any]) -> str:
    """Accuracy and costs."""
    lines = [f"{100 * found['right']:.1f} % of 500 new points right after {len(found['losses'])} steps"]
    return "\n".join([*lines, *table(found["rows"])])


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """What was learned, how the iteration settles, and what the graph keeps."""
    import matplotlib.pyplot as plt

    figure, (a, b, c) = plt.subplots(1, 3, figsize=(8.6, 2.8))
    a.contour(found["ticks"], found["ticks"], found["shade"], levels=[0.5], colors=ink.text, linewidths=1)
    for k in (0, 1):
        a.plot(*found["x"][found["which"] == k].T, ".", color=ink[k], markersize=3)
    a.set(aspect="equal", xticks=[], yticks=[], title="two spirals")
    b.semilogy(found["rate"], color=ink[2])
    b.set(xlabel="iteration", title="change of $z$")
    implicit, *unrolled = found["rows"]
    c.plot([row.steps for row in unrolled], [row.cost.kept for row in unrolled], ".-", color=ink[1], label="unrolled")
    c.axhline(implicit.cost.kept, color=ink[0], label="implicit")
    c.set(xlabel="iterations", title="MB kept for backward", yscale="log", xscale="log")
    c.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
