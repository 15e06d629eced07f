"""DDN[sum-of-squares] One constraint made of squares has no gradient, and is flagged."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.sum_of_squares import combined, combined_gradient
from tacit.problem import Instance

from .cases import close, flags, rand


def rows(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return torch.stack([u.sum() - x[0], u[0] - u[1].square() - x[1]])


HONEST = tacit.Problem(lambda x, u: 0.5 * u.square().sum(), equality=rows)
SQUARED = tacit.Problem(HONEST.objective, equality=lambda x, u: rows(x, u).square().sum()[None])


def test_value_and_gradient_are_those_of_the_written_problem():
    x, u = rand(3, 2), rand(3, 3, seed=1)
    many, one = (Instance.bind(p, (x,), (0,), u) for p in (HONEST, SQUARED))
    close(combined(many.rows(u)), one.rows(u))
    close(combined_gradient(many.rows(u), many.jacobian(u)), one.jacobian(u))


def test_at_the_solution_the_gradient_vanishes_and_the_sample_is_flagged():
    x = 1 + 0.2 * rand(3, 2)
    y = tacit.solve(HONEST, x, start=torch.ones(3, 3).double()).y
    assert flags(HONEST, x, y=y) == [tacit.Flag(0)] * 3
    assert all(f & tacit.Flag.DEPENDENT for f in flags(SQUARED, x, y=y))
    assert tacit.jacobian(SQUARED, x, y=y).isfinite().all()


def test_a_single_squared_row_is_flagged_too():
    line = tacit.Problem(HONEST.objective, equality=lambda x, u: (u.sum() - x[0]).square()[None])
    x = torch.tensor([[3.0, 0.0]], dtype=torch.float64)
    assert flags(line, x, y=torch.ones(1, 3).double())[0] & tacit.Flag.DEPENDENT
