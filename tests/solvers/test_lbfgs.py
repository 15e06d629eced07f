from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, VALLEY, bind, doubles
from tacit.errors import SolverError
from tacit.problem import Problem, Status
from tacit.solvers import LBFGS


def test_curved_valleys_are_followed() -> None:
    x, start = doubles((100.0, 1.0), (1.0, -2.0)), doubles((-1.2, 1.0), (3.0, 3.0))
    found = LBFGS().solve(bind(VALLEY, x, start), start)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, torch.stack([x[:, 1], x[:, 1] ** 2], 1), rtol=1e-5, atol=1e-5)


def test_many_unknowns_need_no_matrix() -> None:
    problem = Problem(objective=lambda x, u: ((u - x).square() * (1 + torch.arange(len(u)) % 7)).sum())
    x = torch.linspace(-1, 1, 4000, dtype=torch.float64).reshape(2, 2000)
    found = LBFGS().solve(bind(problem, x, 0 * x), 0 * x)
    assert (found.status == Status.CONVERGED).all() and (found.iterations < 60).all()
    torch.testing.assert_close(found.u, x, rtol=0, atol=1e-5)


def test_a_spoiled_element_leaves_its_neighbours_alone() -> None:
    x, start = doubles((100.0, 1.0), (9.0, 1.0), (1.0, -2.0)), doubles((-1.2, 1.0)).repeat(3, 1)
    clean = LBFGS().solve(bind(VALLEY, x, start), start)
    x[1, 1] = float("nan")
    found = LBFGS().solve(bind(VALLEY, x, start), start)
    assert found.status[1].item() == Status.NONFINITE
    assert (found.u[[0, 2]] - clean.u[[0, 2]]).abs().max() <= 1e-12


def test_a_descending_ray_is_not_an_answer() -> None:
    problem = Problem(objective=lambda x, u: (x * u).sum())
    x = doubles((1.0, 2.0))
    assert LBFGS().solve(bind(problem, x, 0 * x), 0 * x).status.item() != Status.CONVERGED


def test_constraints_are_refused() -> None:
    x = doubles((3.0, 4.0))
    with pytest.raises(SolverError, match="InteriorPoint"):
        LBFGS().solve(bind(BALL, x, x), x)
