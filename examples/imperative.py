"""A declared layer that equals an imperative one: two networks, one with each, trained side by side."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

import tacit
from tacit.implicit.imperative import rectified_linear_unit


class Declared(tacit.Node):
    """y = argmin_u 1/2 |u - tanh(W x + b)|^2."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs, dtype=torch.float64)

    def objective(self, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return 0.5 * (u - self.linear(x).tanh()).square().sum()

    def start(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(self.linear.bias)


def study(fast: bool) -> dict[str, Any]:
    """Train both on a curve with the same data and the same start; then ReLU, declared, at five numbers."""
    torch.manual_seed(0)
    declared = torch.nn.Sequential(Declared(1, 16), torch.nn.Linear(16, 1, dtype=torch.float64))
    imperative = torch.nn.Sequential(
        torch.nn.Sequential(torch.nn.Linear(1, 16, dtype=torch.float64), torch.nn.Tanh()),
        torch.nn.Linear(16, 1, dtype=torch.float64),
    )
    with torch.no_grad():
        for mine, other in zip(declared.parameters(), imperative.parameters()):
            other.copy_(mine)
    x = torch.linspace(-2, 2, 64, dtype=torch.float64)[:, None]
    wanted = (2 * x).sin() * x
    losses: dict[str, list[float]] = {"declared": [], "imperative": []}
    for name, network in (("declared", declared), ("imperative", imperative)):
        optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
        for _ in range(5 if fast else 300):
            loss = (network(x) - wanted).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses[name].append(float(loss.detach()))
    at = torch.tensor([[-1.0, -0.5, 0.0, 0.5, 1.0]], dtype=torch.float64, requires_grad=True)
    slopes = {}
    for weak in ("active", "inactive"):
        policy = tacit.Implicit(weak=weak, on_failure="ignore")
        y = tacit.argmin(rectified_linear_unit(), at, start=at.detach().clamp_min(0), gradient=policy)
        slopes[weak] = torch.autograd.grad(y.sum(), at)[0][0]
    return {
        **{k: torch.tensor(v) for k, v in losses.items()},
        "at": at.detach()[0],
        "relu": y.detach()[0],
        "slopes": slopes,
    }


def say(found: dict[str, Any]) -> str:
    """How far the losses are apart, and ReLU's derivative at zero."""
    apart = (found["declared"] - found["imperative"]).abs().max()
    row = "  ".join(f"{v:4.1f}" for v in found["at"].tolist())
    lines = [
        f"loss after {len(found['declared'])} steps: declared {found['declared'][-1]:.6f}, "
        f"imperative {found['imperative'][-1]:.6f}; never apart by more than {apart:.0e}",
        f"ReLU, declared, at             {row}",
        f"                   y           {'  '.join(f'{v + 0.0:4.1f}' for v in found['relu'].tolist())}",
    ]
    for weak, slope in found["slopes"].items():
        lines.append(f"Dy, weak={weak!r:<12}          {'  '.join(f'{v + 0.0:4.1f}' for v in slope.tolist())}")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Both losses; ReLU with its derivative under both policies."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.6, 2.8))
    a.semilogy(found["declared"], color=ink[0], linewidth=4, alpha=0.5, label="declared")
    a.semilogy(found["imperative"], "--", color=ink[1], label="imperative")
    a.set(xlabel="step", title="loss")
    a.legend()
    b.plot(found["at"], found["relu"], color=ink[0], label="$y$")
    for k, (weak, slope) in enumerate(found["slopes"].items()):
        b.plot(found["at"], slope, "o" if weak == "active" else "x", color=ink[1 + k], label=f"its derivative, {weak}")
    b.set(xlabel="$x$", title="ReLU as a projection")
    b.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
