from __future__ import annotations

import pytest
import torch

from solvers.cases import bind, doubles
from tacit.problem import Problem, Status
from tacit.solvers.external import Ipopt

pytest.importorskip("ipyopt")


def test_infeasible_and_unbounded_problems_are_told_apart() -> None:
    contradiction = Problem(lambda x, u: u.square().sum(), lambda x, u: u.square().sum()[None] + x[0])
    x = doubles((1.0, 1.0))
    assert Ipopt().solve(bind(contradiction, x, x), x).status.item() == Status.INFEASIBLE
    ray = Problem(lambda x, u: -(x * u).sum(), None, lambda x, u: u[1][None])
    assert Ipopt().solve(bind(ray, x, x), x).status.item() != Status.CONVERGED


def test_multipliers_have_the_sign_of_the_library() -> None:
    problem = Problem(
        lambda x, u: 0.5 * (u - x).square().sum(), lambda x, u: u[0][None] - 1, lambda x, u: u[1][None] - 1
    )
    x = doubles((3.0, 4.0))
    found = Ipopt().solve(bind(problem, x, 0 * x), 0 * x)
    torch.testing.assert_close(found.lam, doubles((-2.0, -3.0)), rtol=0, atol=1e-12)
