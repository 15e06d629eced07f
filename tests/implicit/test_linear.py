"""Solves with K that are differentiated again: by the explicit inverse and its refinement."""

from __future__ import annotations

import torch
from torch.autograd import gradcheck, gradgradcheck

import tacit
from tacit.implicit.linear import attach, solve_attached
from tacit.problem import Instance

from .cases import bowl, close, rand

PROBLEM = tacit.Problem(bowl, equality=lambda x, u: (u * u).sum()[None] - 1 - x[:1].square())


def solved():
    x = rand(2, 3, seed=4)
    s = tacit.solve(PROBLEM, x, start=torch.ones_like(x))
    return x, s.y, s.equality


def matrix(x, y, lam):
    from tacit.implicit import kkt_matrix
    from tacit.problem.letters import letters

    found = letters(Instance.bind(PROBLEM, (x,), (0,), y), y, lam)
    return kkt_matrix(found.H, found.A, torch.ones_like(lam, dtype=torch.bool))


def test_a_solve_has_the_derivatives_of_the_inverse_in_everything_k_depends_on():
    x, y, lam = solved()
    keep, regular = torch.ones_like(lam, dtype=torch.bool), torch.ones(2, dtype=torch.bool)

    def solve(x, y, lam, v):
        inverse = torch.linalg.inv(matrix(x, y, lam)).detach()
        instance = Instance(PROBLEM, (x,), (0,), y.shape[1:], len(y), 1, 0)
        return solve_attached(instance, y, lam, keep, inverse, regular, v)

    inputs = tuple(t.clone().requires_grad_() for t in (x, y, lam, rand(2, 4, 1)))
    close(solve(*inputs), torch.linalg.solve(matrix(x, y, lam), inputs[3]))
    assert gradcheck(solve, inputs)
    assert gradgradcheck(solve, inputs)


def test_a_sample_that_is_not_regular_is_held_fixed():
    x, y, lam = solved()
    y = y.requires_grad_()
    keep, regular = torch.ones_like(lam, dtype=torch.bool), torch.tensor([True, False])
    inverse = torch.linalg.inv(matrix(x, y.detach(), lam))
    w = solve_attached(Instance.bind(PROBLEM, (x,), (0,), y), y, lam, keep, inverse, regular, rand(2, 4, 1))
    (g,) = torch.autograd.grad(w.sum(), y)
    assert g[0].abs().max() > 0 and g[1].abs().max() == 0


def test_an_attached_solution_stays_where_it_is_and_has_the_derivative():
    x, y, lam = solved()
    inverse = torch.linalg.inv(matrix(x, y, lam))
    leaf = x.clone().requires_grad_()
    instance = Instance.bind(PROBLEM, (leaf,), (0,), y)
    found, _ = attach(instance, y, lam, torch.ones_like(lam, dtype=torch.bool), inverse, 2)
    close(found, y, 1e-12)
    v = rand(2, 3, seed=9)
    expected = torch.einsum("bm,bmn->bn", v, tacit.jacobian(PROBLEM, x, y=y))
    close(torch.autograd.grad(found, leaf, v)[0], expected, 1e-9)
