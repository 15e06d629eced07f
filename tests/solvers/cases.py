"""Small programs with known answers, shared by the tests of the solvers."""

from __future__ import annotations

import torch

from tacit.problem import Instance, Problem
from tacit.shapes import Tensor

BALL = Problem(objective=lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: u.square().sum()[None] - 1)
VALLEY = Problem(objective=lambda x, u: x[0] * (u[1] - u[0] ** 2) ** 2 + (x[1] - u[0]) ** 2)
SIMPLEX = Problem(
    objective=lambda x, u: 0.5 * (u - x).square().sum(),
    equality=lambda x, u: u.sum()[None] - 1,
    inequality=lambda x, u: -u,
)


def bind(problem: Problem, x: Tensor, start: Tensor) -> Instance:
    """The problem with one batched input."""
    return Instance.bind(problem, (x,), (0,), start)


def doubles(*rows: tuple[float, ...]) -> Tensor:
    """A float64 matrix of these rows."""
    return torch.tensor(rows, dtype=torch.float64)


def onto_simplex(x: Tensor) -> Tensor:
    """The projection onto the probability simplex, by sorting."""
    ordered = x.sort(dim=1, descending=True).values
    count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    shift = (ordered.cumsum(1) - 1) / count
    last = (ordered > shift).sum(1, keepdim=True) - 1
    return (x - shift.gather(1, last)).clamp(min=0.0)
