from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, bind, doubles
from tacit.errors import OptionError, SolverError
from tacit.problem import Problem, Status
from tacit.solvers import GradientDescent

BOWL = Problem(objective=lambda x, u: (u - x).square().sum())


def test_a_small_rate_converges_and_a_large_one_does_not() -> None:
    x = doubles((1.0, 2.0))
    found = GradientDescent(rate=0.4).solve(bind(BOWL, x, 0 * x), 0 * x)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, x, rtol=0, atol=1e-8)
    assert GradientDescent(rate=1.1, max_iter=50).solve(bind(BOWL, x, 0 * x), 0 * x).status.item() != Status.CONVERGED


def test_a_step_can_be_differentiated() -> None:
    x, u = doubles((1.0, 2.0)).requires_grad_(), doubles((0.0, 0.0))
    (slope,) = torch.autograd.grad(GradientDescent(rate=0.25).step(bind(BOWL, x, u), u).sum(), x)
    torch.testing.assert_close(slope, doubles((0.5, 0.5)))


def test_rates_that_make_no_sense_and_constraints_are_refused() -> None:
    with pytest.raises(OptionError, match="rate"):
        GradientDescent(rate=-1.0)
    x = doubles((3.0, 4.0))
    with pytest.raises(SolverError, match="InteriorPoint"):
        GradientDescent().solve(bind(BALL, x, x), x)
