from __future__ import annotations

import torch

from solvers.cases import bind, doubles
from tacit.problem import Problem, Status
from tacit.solvers.restoration import restore


def feasibility(equality: object = None, inequality: object = None) -> Problem:
    return Problem(objective=None, equality=equality, inequality=inequality)


def test_the_nearest_of_two_roots_is_taken() -> None:
    problem = feasibility(lambda x, u: (u - 1).square() - x.square())
    x, start = doubles((0.7,), (0.7,), (-0.4,)), doubles((1.7,), (0.3,), (0.6,))
    found = restore(bind(problem, x, start), start)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, doubles((1.7,), (0.3,), (0.6,)), rtol=0, atol=1e-12)


def test_an_underdetermined_linear_row_takes_the_least_step() -> None:
    problem = feasibility(lambda x, u: u.sum()[None] - x[0])
    x, start = doubles((4.0, 0.0, 0.0)), doubles((0.0, 0.5, 0.5))
    found = restore(bind(problem, x, start), start)
    torch.testing.assert_close(found.u, doubles((1.0, 1.5, 1.5)), rtol=0, atol=1e-9)


def test_a_stationary_violation_is_infeasible_unless_it_can_be_left() -> None:
    problem = feasibility(lambda x, u: u.square() + x)
    x, start = doubles((1.0,), (-1.0,)), doubles((0.0,), (0.0,))
    found = restore(bind(problem, x, start), start)
    assert found.status.tolist() == [Status.INFEASIBLE, Status.CONVERGED]
    assert found.u[1].abs().item() == 1.0


def test_a_target_ends_the_search_early() -> None:
    problem = feasibility(lambda x, u: u.pow(3) - x)
    x, start = doubles((8.0,)), doubles((10.0,))
    loose = restore(bind(problem, x, start), start, target=torch.tensor([30.0], dtype=torch.float64))
    tight = restore(bind(problem, x, start), start)
    assert loose.iterations.item() < tight.iterations.item()
    torch.testing.assert_close(tight.u, doubles((2.0,)), rtol=0, atol=1e-9)
