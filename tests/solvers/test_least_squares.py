from __future__ import annotations

import pytest
import torch

from solvers.cases import bind, doubles
from tacit.errors import OptionTypeError
from tacit.problem import Problem, Status
from tacit.shapes import Tensor
from tacit.solvers import GaussNewton, LevenbergMarquardt

TIMES = torch.arange(6, dtype=torch.float64)


def decay(x: Tensor, u: Tensor) -> Tensor:
    return u[0] * torch.exp(u[1] * TIMES.to(u.dtype)) - x


DECAY = Problem(objective=lambda x, u: 0.5 * decay(x, u).square().sum())


@pytest.mark.parametrize("solver", [GaussNewton, LevenbergMarquardt])
def test_an_exact_fit_is_found(solver: type[LevenbergMarquardt]) -> None:
    truth = doubles((2.0, -0.5), (1.0, -0.1), (-3.0, -1.0))
    x = truth[:, :1] * torch.exp(truth[:, 1:] * TIMES)
    start = doubles((1.0, -0.3)).repeat(3, 1)
    found = solver(residuals=decay).solve(bind(DECAY, x, start), start)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, truth, rtol=1e-10, atol=1e-10)


def test_a_fit_with_residue_satisfies_the_conditions_of_the_objective() -> None:
    x, start = doubles((2.0, 1.1, 0.9, 0.2, 0.4, 0.1)), doubles((1.0, -0.3))
    instance = bind(DECAY, x, start)
    found = LevenbergMarquardt(residuals=decay).solve(instance, start)
    assert found.status.item() == Status.CONVERGED
    assert instance.gradient(found.u).abs().max() < 1e-13


def test_a_far_start_is_damped() -> None:
    truth = doubles((2.0, -0.5))
    x, start = truth[:, :1] * torch.exp(truth[:, 1:] * TIMES), doubles((-5.0, 1.0))
    found = LevenbergMarquardt(residuals=decay).solve(bind(DECAY, x, start), start)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, truth, rtol=1e-9, atol=1e-9)


def test_a_spoiled_element_leaves_its_neighbours_alone() -> None:
    x = torch.exp(-0.3 * TIMES)[None] * doubles((1.0,), (2.0,), (3.0,))
    start = doubles((1.0, -0.1)).repeat(3, 1)
    clean = LevenbergMarquardt(residuals=decay).solve(bind(DECAY, x, start), start)
    x[1, 0] = float("nan")
    found = LevenbergMarquardt(residuals=decay).solve(bind(DECAY, x, start), start)
    assert found.status[1].item() == Status.NONFINITE
    assert (found.u[[0, 2]] - clean.u[[0, 2]]).abs().max() <= 1e-12


@pytest.mark.untyped
def test_residuals_must_be_callable() -> None:
    with pytest.raises(OptionTypeError, match="residuals"):
        LevenbergMarquardt(residuals=3)
