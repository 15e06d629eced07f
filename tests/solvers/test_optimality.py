from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, bind, doubles
from tacit.problem import Problem
from tacit.solvers.optimality import active_rows, evaluate, residual


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_the_residual_has_no_units(factor: float) -> None:
    scaled = Problem(lambda x, u: factor * BALL.objective(x, u), None, lambda x, u: BALL.inequality(x, u) / factor)
    x, u, lam = doubles((3.0, 4.0)), doubles((0.7, 0.8)), doubles((-2.0,))
    plain = residual(evaluate(bind(BALL, x, x), u, lam))
    torch.testing.assert_close(residual(evaluate(bind(scaled, x, x), u, lam * factor**2)), plain, rtol=1e-9, atol=0)


def test_a_level_stretch_does_not_look_stationary() -> None:
    problem = Problem(objective=lambda x, u: (x * torch.exp(-u)).sum())
    x, u = doubles((1.0,)), doubles((30.0,))
    instance = bind(problem, x, u)
    none = torch.zeros(1, 0, dtype=torch.float64)
    assert residual(evaluate(instance, u, none)).item() > 1e-3


def test_wrong_signs_violations_and_slack_with_force_all_count() -> None:
    x = doubles((3.0, 4.0)).repeat(4, 1)
    u = doubles((0.6, 0.8), (0.6, 0.8), (0.66, 0.88), (0.54, 0.72))
    lam = doubles((-2.0,), (2.0,), (-2.0,), (-2.0,))
    error = residual(evaluate(bind(BALL, x, u), u, lam))
    assert error[0] < 1e-15 and (error[1:] > 1e-2).all()


def test_a_row_is_active_where_its_multiplier_outweighs_its_slack() -> None:
    x, u = doubles((3.0, 4.0)).repeat(2, 1), doubles((0.6, 0.8), (0.3, 0.4))
    at = evaluate(bind(BALL, x, u), u, doubles((-2.0,), (-1e-9,)))
    assert active_rows(at).tolist() == [[True], [False]]


def test_what_is_not_finite_is_infinitely_wrong() -> None:
    x, u = doubles((float("nan"), 4.0), (3.0, 4.0)), doubles((0.6, 0.8), (0.6, 0.8))
    error = residual(evaluate(bind(BALL, x, u), u, doubles((-2.0,), (-2.0,))))
    assert error[0].isinf() and error[1] < 1e-15
