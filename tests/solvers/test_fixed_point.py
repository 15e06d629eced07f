from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, bind, doubles
from tacit.errors import OptionError, SolverError
from tacit.problem import Problem, Status
from tacit.solvers import FixedPoint

COSINE = Problem(objective=None, equality=lambda x, u: torch.cos(x * u) - u)


@pytest.mark.parametrize("method", ["anderson", "picard"])
def test_the_map_is_read_from_the_equality(method: str) -> None:
    x = doubles((1.0, 0.5), (0.2, 0.9))
    found = FixedPoint(method=method).solve(bind(COSINE, x, 0 * x), 0 * x)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(torch.cos(x * found.u), found.u, rtol=0, atol=1e-9)


def test_anderson_needs_fewer_steps_than_picard() -> None:
    x = doubles((1.0, 0.5))
    instance = bind(COSINE, x, 0 * x)
    steps = [FixedPoint(method=method).solve(instance, 0 * x).iterations.item() for method in ("anderson", "picard")]
    assert 2 * steps[0] < steps[1]


def test_a_linear_map_is_solved_within_its_dimension() -> None:
    W = doubles((0.5, 0.4, 0.0), (-0.4, 0.3, 0.2), (0.0, 0.1, 0.8))
    problem = Problem(objective=None, equality=lambda x, u: W @ u + x - u)
    x = doubles((1.0, 2.0, 3.0))
    found = FixedPoint().solve(bind(problem, x, 0 * x), 0 * x)
    assert found.status.item() == Status.CONVERGED and found.iterations.item() <= 8
    torch.testing.assert_close(found.u[0], torch.linalg.solve(torch.eye(3).double() - W, x[0]), rtol=1e-8, atol=1e-8)


def test_a_map_may_be_given_and_damped() -> None:
    x = doubles((1.0,))
    solver = FixedPoint(map=lambda x, u: -x * u + 1, method="picard", damping=0.5)
    found = solver.solve(bind(COSINE, x, 0 * x), 0 * x)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles((0.5,)), rtol=0, atol=1e-9)


def test_a_map_that_runs_away_is_no_answer() -> None:
    x = doubles((3.0,), (0.1,))
    found = FixedPoint(map=lambda x, u: x * u + 1, method="picard").solve(bind(COSINE, x, 0 * x), 0 * x)
    assert found.status[0].item() != Status.CONVERGED and found.status[1].item() == Status.CONVERGED


def test_a_spoiled_element_leaves_its_neighbours_alone() -> None:
    x = doubles((1.0,), (0.3,), (0.7,))
    clean = FixedPoint().solve(bind(COSINE, x, 0 * x), 0 * x)
    x[1] = float("nan")
    found = FixedPoint().solve(bind(COSINE, x, torch.zeros_like(x)), torch.zeros_like(x))
    assert found.status[1].item() == Status.NONFINITE
    assert (found.u[[0, 2]] - clean.u[[0, 2]]).abs().max() <= 1e-12


def test_a_misspelt_method_and_a_problem_without_a_map_are_refused() -> None:
    with pytest.raises(OptionError, match="Did you mean 'anderson'"):
        FixedPoint(method="andersen")
    x = doubles((3.0, 4.0))
    with pytest.raises(SolverError, match="map="):
        FixedPoint().solve(bind(BALL, x, x), x)
