"""The matrix-free solve as a differentiable function: its derivative is another solve."""

from __future__ import annotations

import torch
from torch.autograd import gradcheck, gradgradcheck

import tacit
from tacit.node.binding import bind
from tacit.node.free import solve_free
from tacit.node.specification import Rule

from .cases import CASES

CASE = CASES["equality"]
X = CASE.x[:2]


def solve(x, y, lam, v, regular=(True, True)):
    rule = Rule(bind(CASE.problem, (x,), 0), 1, 0, y.shape[1:], tacit.Implicit(linear_solver="matrix-free"))
    keep = torch.ones(2, 1, dtype=torch.bool)
    return solve_free(rule, (x,), y, lam, keep, torch.tensor(regular), v)


def arguments():
    s = tacit.solve(CASE.problem, X, start=CASE.start)
    return X, s.y, s.equality, torch.cos(torch.arange(8.0).double()).reshape(2, 4)


def test_it_solves_with_k():
    from tacit.implicit import kkt_matrix
    from tacit.problem import Instance
    from tacit.problem.letters import letters

    x, y, lam, v = arguments()
    found = letters(Instance.bind(CASE.problem, (x,), (0,), y), y, lam)
    K = kkt_matrix(found.H, found.A, torch.ones(2, 1, dtype=torch.bool))
    torch.testing.assert_close(solve(x, y, lam, v), torch.linalg.solve(K, v))


def test_first_and_second_derivatives_are_those_of_finite_differences():
    inputs = tuple(t.clone().requires_grad_() for t in arguments())
    assert gradcheck(solve, inputs, atol=1e-6)
    assert gradgradcheck(solve, inputs, atol=1e-5)


def test_a_sample_that_is_not_regular_is_zero():
    w = solve(*arguments(), regular=(True, False))
    assert w[0].abs().max() > 0 and not w[1].any()
