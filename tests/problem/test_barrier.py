"""DDN[log-barrier] The barrier is an approximation: it approaches the exact answer and gradient as t grows."""

from __future__ import annotations

import itertools

import pytest
import torch

import tacit
from tacit.errors import InputValueError, OptionError
from tacit.problem.barrier import log_barrier

BALL = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: u.square().sum()[None] - 1)
X = torch.tensor([[2.0, 1.0], [0.1, 0.2]], dtype=torch.float64)


def test_answer_and_gradient_approach_the_exact_ones_like_one_over_t():
    exact = tacit.solve(BALL, X, start=torch.zeros_like(X)).y
    Dy = tacit.jacobian(BALL, X, y=exact)
    away = []
    for t in (1e2, 1e3, 1e4):
        barrier = log_barrier(BALL, t)
        y = tacit.solve(barrier, X, start=torch.full_like(X, 0.1)).y
        away.append([(y - exact).norm(), (tacit.jacobian(barrier, X, y=y) - Dy).norm()])
    for near, nearer in itertools.pairwise(away):
        for a, b in zip(near, nearer, strict=True):
            assert b < 0.2 * a
    assert away[-1][1] < 1e-3


def test_outside_the_value_is_infinite_and_equalities_are_kept():
    problem = tacit.Problem(None, equality=lambda x, u: u - x, inequality=lambda x, u: u - 1)
    barrier = log_barrier(problem, 1.0)
    assert barrier.equality is problem.equality
    assert barrier.objective(torch.zeros(1), torch.tensor([2.0])) == torch.inf
    assert barrier.objective(torch.zeros(1), torch.zeros(1)) == 0


def test_what_has_no_barrier_is_refused():
    with pytest.raises(InputValueError, match="with an inequality"):
        log_barrier(tacit.Problem(lambda x, u: u.sum()), 1.0)
    with pytest.raises(OptionError):
        log_barrier(BALL, 0.0)
