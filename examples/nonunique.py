"""Two solutions: training follows one of them, or jumps between both when the solver does."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit

either = tacit.Problem(objective=None, equality=lambda x, u: (u - 1).square() - x.square())
TARGET = 0.2


def keeps(x: torch.Tensor) -> torch.Tensor:
    """A solver that always takes y = 1 - x."""
    return 1 - x


def train(choose: Any, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradient descent on J(x) = 1/2 (y(x) - target)^2; the trajectories of x and y."""
    x = torch.tensor([[0.3]], dtype=torch.float64)
    xs, ys = [], []
    for _ in range(steps):
        x.requires_grad_()
        y = tacit.argmin(either, x, solver=choose)
        (slope,) = torch.autograd.grad(0.5 * (y - TARGET).square().sum(), x)
        xs.append(x.item())
        ys.append(y.item())
        x = (x - 0.2 * slope).detach()
    return torch.tensor(xs), torch.tensor(ys)


def study(fast: bool) -> dict[str, Any]:
    """The derivative on both branches, and training with a solver that keeps to one and with one that does not."""
    generator = torch.Generator().manual_seed(1)

    def jumps(x: torch.Tensor) -> torch.Tensor:
        return 1 + x if torch.rand((), generator=generator) < 0.5 else 1 - x

    x = torch.tensor([[0.3], [0.3]], dtype=torch.float64)
    y = torch.tensor([[0.7], [1.3]], dtype=torch.float64)
    steps = 12 if fast else 30
    return {
        "branches": y.flatten(),
        "Dy": tacit.jacobian(either, x, y=y).flatten(),
        "keeps": train(keeps, steps),
        "jumps": train(jumps, steps),
    }


def say(found: dict[str, Any]) -> str:
    """Both derivatives, and where training ended."""
    (x, y), (xj, yj) = found["keeps"], found["jumps"]
    return (
        f"at x = 0.3: Dy = {found['Dy'][0]:+.3f} for y = {found['branches'][0]:.1f}, "
        f"Dy = {found['Dy'][1]:+.3f} for y = {found['branches'][1]:.1f}\n"
        f"a solver that keeps to one branch: after {len(x)} steps x = {x[-1]:.3f}, y = {y[-1]:.3f}\n"
        f"a solver that jumps:               after {len(xj)} steps x = {xj[-1]:.3f}, "
        f"y within {(yj[-10:] - TARGET).abs().max():.2f} of the target in the last ten"
    )


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Both branches with the trajectories on them, and x against the step."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.6, 3.0))
    x = torch.linspace(-0.4, 1.3, 2)
    a.plot(x, 1 - x, color=ink.faint)
    a.plot(x, 1 + x, color=ink.faint)
    a.axhline(TARGET, linestyle="--", color=ink.text, linewidth=1)
    for k, (key, word) in enumerate((("keeps", "keeps to one branch"), ("jumps", "jumps"))):
        xs, ys = found[key]
        a.plot(xs, ys, ".-", color=ink[k], linewidth=0.7)
        b.plot(xs, color=ink[k], label=f"solver {word}")
    a.set(xlabel="$x$", title="$y = 1 - x$ and $y = 1 + x$")
    b.set(xlabel="step", title="$x$")
    b.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
