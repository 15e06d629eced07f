"""A few small declared problems, one of each class, that the tests of this room share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

import tacit
from tacit.shapes import Float, Tensor


@dataclass(frozen=True)
class Case:
    """A problem with inputs `x (b, 3)` at which it is regular, solved from `start`."""

    problem: tacit.Problem
    x: Float[Tensor, "b 3"]
    start: Callable[[Tensor], Tensor]

    def argmin(self, x: Tensor, **options: object) -> Tensor:
        """y(x) by the default solver."""
        return tacit.argmin(self.problem, x, start=self.start, **options)

    def near(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """y(x) for inputs close to this `x`: the search starts at its solution, which makes it short."""
        y = self.argmin(x.detach())
        return lambda x: tacit.argmin(self.problem, x, start=y)

    def of_one(self, x: Tensor) -> Tensor:
        """y of a single sample `x (3,)`."""
        return self.argmin(x[None])[0]


def inputs(batch: int = 4, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers of size about one, the same at every call; the first rows are short, the last ones long."""
    k = torch.arange(1, 3 * batch + 1, dtype=dtype).reshape(batch, 3)
    return torch.sin(2.7 * k) * torch.linspace(0.4, 1.9, batch, dtype=dtype)[:, None]


def same(x: Tensor) -> Tensor:
    return x


def quartic(x: Tensor, u: Tensor) -> Tensor:
    return 0.5 * (u - x).square().sum() + 0.1 * u.pow(4).sum() + 0.2 * torch.cos(u[0] * x[1])


def distance(x: Tensor, u: Tensor) -> Tensor:
    return 0.5 * (u - x).square().sum()


def sphere(x: Tensor, u: Tensor) -> Tensor:
    return u.square().sum()[None] - 1


def plane(x: Tensor, u: Tensor) -> Tensor:
    return (u.sum() - torch.sin(x[0]))[None]


def circle_and_planes(x: Tensor, u: Tensor) -> Tensor:
    """As many rows as unknowns: the point of the unit circle over `u_2 = x_2 / 2` on a plane through the axis."""
    return torch.stack([u.square().sum() - 1, u[2] - 0.4 * torch.sin(x[2]), u[0] - u[1] * torch.tanh(x[0])])


CASES = {
    "free": Case(tacit.Problem(quartic), inputs(), same),
    "equality": Case(tacit.Problem(quartic, equality=sphere), inputs() + 0.5, same),
    "inequality": Case(tacit.Problem(quartic, inequality=sphere), inputs(), same),
    "mixed": Case(tacit.Problem(distance, equality=plane, inequality=sphere), inputs(), same),
    "feasibility": Case(tacit.Problem(None, equality=circle_and_planes), inputs(), torch.ones_like),
}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
ball = tacit.Problem(distance, inequality=sphere)


def jacobian(case: Case, x: Tensor) -> Tensor:
    """The reference: Dy `(b, 3, 3)` by `tacit.jacobian` at the solution."""
    return tacit.jacobian(case.problem, x, y=tacit.solve(case.problem, x, start=case.start).y)


def gradient(y: Tensor, *xs: Tensor) -> tuple[Tensor, ...]:
    """Gradients of a weighted sum of y that no symmetry annuls."""
    weights = torch.cos(torch.arange(y.numel(), dtype=y.dtype)).reshape(y.shape)
    return torch.autograd.grad((weights * y).sum(), xs)
