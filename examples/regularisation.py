"""Learning regularisation weights by bi-level optimisation: a classifier whose two penalties are fitted to held-out data."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present
from measuring import beside_unrolled, table

import tacit

KEEN, IDLE, ROWS = 4, 20, 40
"""Columns that matter, columns that do not, rows of the training data."""


class Shrunk(tacit.Node):
    """w = argmin_u sum logistic(x, u) + 1/2 sum_j exp(log_weight_group(j)) u_j^2; the data are shared inputs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(in_dims=None, **options)
        self.log_weight = torch.nn.Parameter(torch.tensor([2.0, -2.0], dtype=torch.float64))

    def objective(self, x: torch.Tensor, sign: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        weight = torch.cat([self.log_weight[:1].expand(KEEN), self.log_weight[1:].expand(IDLE)]).exp()
        return torch.nn.functional.softplus(-sign * (x @ u)).sum() + 0.5 * (weight * u.square()).sum()


def data(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and their classes, -1 or 1, which depend on the first few columns."""
    x = torch.randn(count, KEEN + IDLE, dtype=torch.float64, generator=generator)
    noise = 0.5 * torch.randn(count, dtype=torch.float64, generator=generator)
    return x, torch.where(x[:, :KEEN].sum(1) + noise > 0, 1.0, -1.0).double()


def descend(log_weight: torch.Tensor, x: torch.Tensor, sign: torch.Tensor, steps: int) -> torch.Tensor:
    """The alternative: so many steps of gradient descent, differentiated one by one."""
    weight = torch.cat([log_weight[:1].expand(KEEN), log_weight[1:].expand(IDLE)]).exp()
    u = torch.zeros(KEEN + IDLE, dtype=torch.float64)
    for _ in range(steps):
        u = u - 0.05 * (weight * u - x.T @ (sign * torch.sigmoid(-sign * (x @ u))))
    return u


def study(fast: bool) -> dict[str, Any]:
    """Adam on the held-out loss; the loss over a grid; the cost and error of the gradient, exact and unrolled."""
    generator = torch.Generator().manual_seed(3)
    x, sign = data(ROWS, generator)
    held, held_sign = data(200, generator)
    zero = torch.zeros(1, KEEN + IDLE, dtype=torch.float64)

    def loss(node: Shrunk) -> torch.Tensor:
        w = node(x, sign, start=zero)[0]
        return torch.nn.functional.softplus(-held_sign * (held @ w)).mean()

    node = Shrunk()
    optimiser = torch.optim.Adam(node.parameters(), lr=0.2)
    path, losses = [], []
    for _ in range(5 if fast else 60):
        value = loss(node)
        optimiser.zero_grad()
        value.backward()
        path.append(node.log_weight.detach().clone())
        losses.append(float(value.detach()))
        optimiser.step()
    ticks = torch.linspace(-5, 5, 5 if fast else 17, dtype=torch.float64)
    probe, grid = Shrunk(), torch.zeros(len(ticks), len(ticks))
    for i, a in enumerate(ticks):
        for j, b in enumerate(ticks):
            with torch.no_grad():
                probe.log_weight.copy_(torch.stack([a, b]))
                grid[j, i] = loss(probe)
    exact = Shrunk()

    def descended(steps: int) -> torch.Tensor:
        w = descend(exact.log_weight, x, sign, steps)
        return torch.nn.functional.softplus(-held_sign * (held @ w)).mean()

    steps = (10, 30) if fast else (30, 100, 300, 1000)
    rows = beside_unrolled(lambda: loss(exact), descended, steps, exact.log_weight)
    return {"path": torch.stack(path), "losses": losses, "ticks": ticks, "grid": grid, "rows": rows}


def say(found: dict[str, Any]) -> str:
    """Where the weights went, and what each gradient costs."""
    a, b = found["path"][-1]
    lines = [
        f"held-out loss {found['losses'][0]:.4f} -> {found['losses'][-1]:.4f} in {len(found['losses'])} steps; "
        f"least on the grid {found['grid'].min():.4f}",
        f"log weights: {a:.2f} where the columns matter, {b:.2f} where they do not",
    ]
    return "\n".join([*lines, *table(found["rows"])])


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The held-out loss over both weights with the path of the optimiser."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.8, 3.2))
    lines = a.contour(found["ticks"], found["ticks"], found["grid"], levels=12, colors=ink.faint, linewidths=0.8)
    a.clabel(lines, fontsize=6, colors=ink.text)
    a.plot(*found["path"].T, ".-", color=ink[0], markersize=3)
    a.plot(*found["path"][0], "o", color=ink[0])
    a.plot(*found["path"][-1], "*", color=ink[1], markersize=11)
    a.set(xlabel="log weight, columns that matter", ylabel="log weight, the others", title="held-out loss")
    b.plot(found["losses"], color=ink[0])
    b.axhline(found["grid"].min(), linestyle="--", color=ink[1], label="best on the grid")
    b.set(xlabel="step", title="held-out loss")
    b.legend()
    return figure


if __name__ == "__main__":
    present(study, say, draw)
