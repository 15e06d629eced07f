"""An inflection is no minimum, a flat one is; what a search makes of them."""

from __future__ import annotations

import pytest
import torch

from solvers.cases import bind, doubles
from tacit.problem import Problem, Status
from tacit.solvers import Automatic, Newton
from tacit.solvers.level import lower_beside

CUBE = Problem(objective=lambda x, u: x[0] * u[0] ** 3 + (u[1] - x[1]).square())


@pytest.mark.parametrize("power", [2, 3, 4, 5, 6])
def test_odd_powers_fall_on_one_side_and_even_ones_on_none(power: int):
    problem = Problem(objective=lambda x, u: x[0] * u[0] ** power + (u[1] - x[1]).square())
    x, u = doubles((1.0, 2.0), (-1.0, 2.0)), doubles((0.0, 2.0), (0.0, 2.0))
    falls, point = lower_beside(bind(problem, x, u), u)
    assert falls.tolist() == ([True, True] if power % 2 else [False, True])
    lower = bind(problem, x, u).objective(point) < 0
    assert lower.tolist() == falls.tolist()


def test_a_level_direction_is_not_lower():
    problem = Problem(objective=lambda x, u: 1e6 + (u[0] + u[1] - x[0]).square())
    x, u = doubles((1.0,)), doubles((0.3, 0.7))
    assert not lower_beside(bind(problem, x, u), u)[0]


@pytest.mark.parametrize("solver", [Newton(), Automatic()])
def test_a_search_does_not_end_at_an_inflection(solver: Newton | Automatic):
    x, start = doubles((1.0, 2.0), (1.0, -1.0)), doubles((0.5, 0.0), (2.0, 3.0))
    found = solver.solve(bind(CUBE, x, start), start)
    assert found.status.tolist() == [Status.UNBOUNDED] * 2


def test_a_search_goes_on_from_an_inflection_to_the_minimum_beyond():
    problem = Problem(objective=lambda x, u: (x[0] * u**3 + u**4 / 4).sum())
    x, start = doubles((1.0,)), doubles((0.5,))
    found = Newton().solve(bind(problem, x, start), start)
    assert found.status == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles((-3.0,)))
