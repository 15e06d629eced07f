from __future__ import annotations

import torch

from solvers.cases import BALL, SIMPLEX, bind, doubles
from tacit.problem import Problem
from tacit.solvers.optimality import active_rows, evaluate, residual
from tacit.solvers.polish import is_minimum, multipliers, polish


def test_eight_digits_become_all_of_them() -> None:
    x = doubles((3.0, 4.0))
    best = polish(bind(BALL, x, x), doubles((0.6 + 1e-6, 0.8 - 2e-6)), doubles((-2.001,)))
    assert best.residual.item() < 1e-15 and best.minimum.item() and best.holds(1e-10).item()
    torch.testing.assert_close(best.u, doubles((0.6, 0.8)), rtol=0, atol=1e-15)


def test_nothing_gets_worse() -> None:
    problem = Problem(objective=lambda x, u: (x * torch.sqrt(1 + u.square())).sum())
    x, far = doubles((1.0,)), doubles((3.0,))  # Newton's method diverges from here
    instance = bind(problem, x, far)
    none = torch.zeros(1, 0, dtype=torch.float64)
    assert polish(instance, far, none, reach=100.0).residual <= residual(evaluate(instance, far, none))


def test_maxima_and_saddles_are_no_minima() -> None:
    problem = Problem(lambda x, u: (x * u.square()).sum(), lambda x, u: u[2][None])
    x = doubles((1.0, 1.0, -9.0), (1.0, -1.0, 1.0), (0.0, 1.0, 0.0))
    u, lam = torch.zeros_like(x), torch.zeros(3, 1, dtype=torch.float64)
    assert is_minimum(evaluate(bind(problem, x, u), u, lam)).tolist() == [True, False, True]


def test_a_row_without_force_does_not_hold_a_maximum() -> None:
    problem = Problem(lambda x, u: -(x * u.square()).sum(), None, lambda x, u: -u)
    x, u = doubles((1.0,)), doubles((0.0,))
    assert not is_minimum(evaluate(bind(problem, x, u), u, doubles((0.0,)))).item()


def test_multipliers_have_the_right_sign() -> None:
    x, u = doubles((2.0, -1.0, 0.3)), doubles((1.0, 0.0, 0.0))
    at = evaluate(bind(SIMPLEX, x, u), u, torch.zeros(1, 4, dtype=torch.float64))
    lam = multipliers(at)
    torch.testing.assert_close(lam, doubles((-1.0, 0.0, -2.0, -0.7)), rtol=0, atol=1e-12)
    assert active_rows(evaluate(bind(SIMPLEX, x, u), u, lam)).tolist() == [[True, False, True, True]]
