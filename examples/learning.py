"""What the examples train with: the loop, and a small network that says how far a measurement is to be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch


def train(parameters: Iterable[torch.Tensor], loss: Callable[[], torch.Tensor], steps: int, rate: float) -> list[float]:
    """So many steps of Adam on `loss()`, which may draw new data at every call; return what it was at each."""
    optimiser = torch.optim.Adam(parameters, lr=rate)
    losses = []
    for _ in range(steps):
        value = loss()
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        losses.append(float(value.detach()))
    return losses


class Trust(torch.nn.Module):
    """A weight between 0 and 1 for each measurement, from three hints about it: (b, n, 3) -> (b, n)."""

    def __init__(self) -> None:
        super().__init__()
        layers = torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1), torch.nn.Sigmoid()
        self.layers = torch.nn.Sequential(*layers).double()

    def forward(self, hints: torch.Tensor) -> torch.Tensor:
        return self.layers(hints)[..., 0]
