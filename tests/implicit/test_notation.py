"""DDN[notation] Derivatives are matrices, rows as outputs, columns as inputs; D_XY^2 f = D_X (D_Y f)'."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.notation import inverse, paper_letters
from tacit.problem import Instance

from .cases import at, close, rand, spd


def test_shapes_and_values_of_the_letters_follow_the_convention():
    M = rand(2, 3, seed=1)
    problem = tacit.Problem(
        lambda x, u: u @ M @ x + 0.5 * u.square().sum(), equality=lambda x, u: (u.sum() * x[0] - x[2])[None]
    )
    x, y, lam = rand(4, 3), rand(4, 2, seed=2), rand(4, 1, seed=3)
    instance = Instance.bind(problem, (x,), (0,), y)
    H, A, B, C = paper_letters(instance, y, lam)
    ones = torch.ones(4, 2).double()
    close(H, torch.eye(2).double().expand(4, 2, 2))
    close(A, (x[:, :1] * ones)[:, None])
    # L = f - lam h: the multiplier enters with a minus.
    first = torch.zeros(4, 2, 3).double()
    first[:, :, 0] = lam
    close(B, M.expand(4, 2, 3) - first)
    close(C, torch.stack([y.sum(1), torch.zeros(4).double(), -torch.ones(4).double()], 1)[:, None])


def test_the_derivative_in_the_second_of_two_inputs_is_asked_by_position():
    problem = tacit.Problem(lambda a, b, u: 0.5 * (u - a * b.sum()).square().sum())
    a, b = rand(2, 1), rand(2, 3, seed=1)
    instance = Instance.bind(problem, (a, b), (0, 0), a)
    assert paper_letters(instance, a, a.new_zeros(2, 0), position=1)[2].shape == (2, 1, 3)


def test_inverse_is_nan_where_there_is_none_and_exact_elsewhere():
    M = spd(4, 3)
    clean = inverse(M)
    M[1], M[2, 0, 0] = 0, torch.nan
    found = inverse(M)
    assert found[1].isnan().all() and found[2].isnan().all()
    assert torch.equal(found[[0, 3]], clean[[0, 3]])
    close(clean[0] @ spd(4, 3)[0], torch.eye(3).double())


def test_inverse_is_differentiable():
    assert torch.autograd.gradcheck(inverse, spd(2, 3).requires_grad_())


def test_chain_rule_is_a_product_of_matrices():
    inner = tacit.Problem(lambda x, u: 0.5 * (u - x.sin()).square().sum())
    x = rand(2, 3)
    point = at(inner, x, x.sin())
    close(-point.letters[2], torch.diag_embed(x.cos()))
