from __future__ import annotations

import pytest
import torch

from solvers.cases import bind, doubles
from tacit.problem import Problem, Status
from tacit.solvers.external import Clarabel

pytest.importorskip("clarabel")


def test_contradicting_rows_are_infeasible() -> None:
    problem = Problem(lambda x, u: (u - x).square().sum(), None, lambda x, u: torch.stack([1 - u[0], u[0]]))
    x = doubles((1.0, 2.0))
    assert Clarabel().solve(bind(problem, x, x), x).status.item() == Status.INFEASIBLE


def test_a_program_without_rows_is_solved_too() -> None:
    problem = Problem(lambda x, u: (u - x).square().sum())
    x = doubles((1.0, 2.0), (3.0, -1.0))
    found = Clarabel().solve(bind(problem, x, 0 * x), 0 * x)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, x, rtol=0, atol=1e-13)
