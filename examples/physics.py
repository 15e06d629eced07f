"""A regression whose output must obey a law: a learned pendulum that keeps its energy."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present
from learning import train
from measuring import beside_unrolled, table

import tacit

STEP = 0.25


def energy(state: torch.Tensor) -> torch.Tensor:
    """Of a pendulum with angle and speed on the last axis."""
    return 0.5 * state[..., 1].square() - state[..., 0].cos()


onto_level = tacit.Problem(  # the state nearest to what the network says, with the energy of the state before
    objective=lambda guess, level, u: 0.5 * (u - guess).square().sum(),
    equality=lambda guess, level, u: energy(u)[None] - level,
)


def exact(state: torch.Tensor, steps: int = 50) -> torch.Tensor:
    """The state one STEP later, by many small steps of leap-frog."""
    angle, speed = state[..., 0], state[..., 1]
    small = STEP / steps
    for _ in range(steps):
        speed = speed - 0.5 * small * angle.sin()
        angle = angle + small * speed
        speed = speed - 0.5 * small * angle.sin()
    return torch.stack([angle, speed], dim=-1)


def nearest(guess: torch.Tensor, level: torch.Tensor, steps: int = 60) -> torch.Tensor:
    """The state of that energy nearest to the guess: project onto the tangent of the level line, again and again."""
    u = guess
    for _ in range(steps):
        slope = torch.stack([u[:, 0].sin(), u[:, 1]], dim=1)
        across = energy(u) - level + (slope * (guess - u)).sum(1)
        u = guess - (across / slope.square().sum(1))[:, None] * slope
    return u


class Pendulum(torch.nn.Module):
    """A network predicts the change of the state; `lawful` puts the result back onto its level of energy."""

    def __init__(self, lawful: bool) -> None:
        super().__init__()
        self.lawful = lawful
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 24), torch.nn.Tanh(), torch.nn.Linear(24, 2)).double()
        torch.nn.init.zeros_(self.net[-1].weight)  # begin where nothing moves, not where anything might be guessed

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        guess = state + self.net(state)
        if not self.lawful:
            return guess
        return tacit.argmin(onto_level, guess, energy(state), solver=nearest)


def states(count: int, generator: torch.Generator) -> torch.Tensor:
    """Swings of up to about two thirds of a half turn."""
    size = 0.3 + 1.7 * torch.rand(count, dtype=torch.float64, generator=generator)
    turn = 2 * torch.pi * torch.rand(count, dtype=torch.float64, generator=generator)
    return torch.stack([size * turn.cos(), size * turn.sin()], dim=1)


def study(fast: bool) -> dict[str, Any]:
    """Train both on the same few states; roll both out far beyond; the cost of the layer beside unrolled steps."""
    generator = torch.Generator().manual_seed(0)
    x = states(60, generator)
    begin = torch.tensor([[1.6, 0.0]], dtype=torch.float64)
    found: dict[str, Any] = {"levels": energy(begin)}
    for name, lawful in (("plain", False), ("lawful", True)):
        torch.manual_seed(0)
        model = Pendulum(lawful)
        losses = train(model.parameters(), lambda m=model: (m(x) - exact(x)).square().mean(), 10 if fast else 250, 0.01)
        path = [begin]
        with torch.no_grad():
            for _ in range(10 if fast else 150):
                path.append(model(path[-1]))
        found[name] = {"loss": losses[-1], "path": torch.cat(path)}
    guess = (exact(x) + 0.1 * torch.randn(x.shape, dtype=x.dtype, generator=generator)).requires_grad_()
    level = energy(x)
    found["rows"] = beside_unrolled(
        lambda: tacit.argmin(onto_level, guess, level, solver=nearest).sin().sum(),
        lambda steps: nearest(guess, level, steps).sin().sum(),
        (1, 3, 10, 60),
        guess,
    )
    return found


def say(found: dict[str, Any]) -> str:
    """Losses, energies, and costs."""
    lines = []
    for name in ("plain", "lawful"):
        drift = (energy(found[name]["path"]) - found["levels"]).abs().max()
        lines.append(
            f"{name:>6}: training loss {found[name]['loss']:.1e}, energy off by up to {drift:.1e} in the roll-out"
        )
    return "\n".join([*lines, *table(found["rows"])])


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Both roll-outs in the plane of states, and their energies."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.8, 3.2))
    for k, name in ((1, "plain"), (0, "lawful")):
        path = found[name]["path"]
        a.plot(*path.T, ".-", color=ink[k], linewidth=0.5, markersize=3)
        b.plot(STEP * torch.arange(len(path)), energy(path), color=ink[k], label=name)
    a.set(xlabel="angle", ylabel="speed", title="roll-out")
    b.set(xlabel="time", title="energy")
    b.legend()
    return figure


if __name__ == "__main__":
    present(study, say, draw)
