"""The derivatives of a quadratic program, in all six, in every mode and of second order. DDN[quadratic-program]"""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacfwd, jacrev, jvp, vmap

import tacit
from nn.functional.quadratic.cases import SIZES, given, programs
from tacit.nn.functional import quadratic_program
from tacit.nn.functional.quadratic import answer, declared
from tacit.shapes import Tensor

SHARED = [(), (0, 2, 4), (2, 3, 4, 5)]


def leaves(size: tuple[int, int, int], shared: tuple[int, ...]) -> tuple[list[Tensor], list[int]]:
    six = programs(*size)
    six = [(t[0] if i in shared else t).clone().requires_grad_() for i, t in enumerate(six)]
    return six, [i for i, t in enumerate(six) if t.numel()]


def function(six: list[Tensor], used: list[int]):
    def layer(*values: Tensor) -> Tensor:
        whole: list[Tensor | None] = [None] * 6
        for i, value in zip(used, values, strict=True):
            whole[i] = value
        return quadratic_program(*whole)

    return layer, [six[i] for i in used]


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("size", SIZES)
def test_first_derivatives_are_those_of_finite_differences(size: tuple[int, int, int], shared: tuple[int, ...]):
    layer, values = function(*leaves(size, shared))
    assert gradcheck(layer, values, check_forward_ad=True, fast_mode=True)


@pytest.mark.parametrize("shared", [(), (0, 2, 4)])
@pytest.mark.parametrize("size", [(3, 1, 4), (2, 0, 3), (3, 1, 0)])
def test_second_derivatives_are_those_of_finite_differences(size: tuple[int, int, int], shared: tuple[int, ...]):
    layer, values = function(*leaves(size, shared))
    assert gradgradcheck(layer, values, fast_mode=True)


def test_the_gradient_is_that_of_the_declared_problem():
    six = [t.requires_grad_() for t in programs(4, 1, 5)]
    u = quadratic_program(*six)
    twin = tacit.argmin(declared(1, 5), *six, solver=lambda *_: u.detach())
    v = torch.cos(torch.arange(12.0, dtype=torch.float64)).reshape(3, 4)
    for ours, theirs in zip(torch.autograd.grad(u, six, v), torch.autograd.grad(twin, six, v), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_the_gradient_of_what_is_shared_is_the_sum_over_the_batch():
    six = programs(4, 1, 5)
    whole = [t[:1].expand_as(t).clone().requires_grad_() for t in six]
    whole[1] = six[1].clone().requires_grad_()
    alone = [t if i == 1 else t[0].detach().clone().requires_grad_() for i, t in enumerate(whole)]
    summed = [
        g if i == 1 else g.sum(0) for i, g in enumerate(torch.autograd.grad(quadratic_program(*whole).sum(), whole))
    ]
    for ours, theirs in zip(torch.autograd.grad(quadratic_program(*alone).sum(), alone), summed, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_the_matrix_of_the_objective_counts_by_its_symmetric_part():
    Q, q = programs(3, 0, 0)[:2]
    skew = torch.tensor([[0.0, 1, 2], [-1, 0, 3], [-2, -3, 0]], dtype=torch.float64)
    crooked = (Q + skew).requires_grad_()
    u = quadratic_program(crooked, q)
    torch.testing.assert_close(u.detach(), quadratic_program(Q, q), rtol=1e-12, atol=1e-12)
    (grad,) = torch.autograd.grad(u.sum(), crooked)
    torch.testing.assert_close(grad, grad.mT)


@pytest.mark.parametrize("size", [(4, 1, 5), (3, 0, 4)])
def test_transforms_of_torch_agree_with_backward(size: tuple[int, int, int]):
    six = programs(*size)
    rest = given(six)

    def layer(q: Tensor, i: int) -> Tensor:
        part = [None if t is None else t[i] for t in rest]
        return quadratic_program(part[0], q, *part[2:])

    reverse = jacrev(layer)(six[1][0], 0)
    torch.testing.assert_close(jacfwd(layer)(six[1][0], 0), reverse, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(torch.autograd.functional.jacobian(lambda q: layer(q, 0), six[1][0]), reverse)
    direction = torch.ones(size[0], dtype=torch.float64)
    moved = jvp(lambda q: layer(q, 0), (six[1][0],), (direction,))[1]
    torch.testing.assert_close(moved, reverse @ direction, rtol=1e-9, atol=1e-11)


def test_vmap_is_the_batch():
    six = programs(4, 1, 5)
    torch.testing.assert_close(vmap(quadratic_program)(*six), quadratic_program(*six), rtol=1e-12, atol=1e-12)
    shared = quadratic_program(six[0][0], six[1])
    torch.testing.assert_close(vmap(quadratic_program, (None, 0))(six[0][0], six[1]), shared, rtol=1e-12, atol=1e-12)
    each = vmap(jacrev(quadratic_program, argnums=1))(*six)
    torch.testing.assert_close(each.sum(1), torch.autograd.grad(*with_leaf(six))[0], rtol=1e-9, atol=1e-11)


def with_leaf(six: list[Tensor]) -> tuple[Tensor, Tensor]:
    q = six[1].clone().requires_grad_()
    return quadratic_program(six[0], q, *six[2:]).sum(), q


def test_a_hessian_through_the_layer_is_exact():
    Q = torch.tensor([[2.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    row = torch.ones(1, 2, dtype=torch.float64)

    def cost(q: Tensor) -> Tensor:
        return quadratic_program(Q, q, row, row[0, :1]).pow(3).sum()

    q = torch.tensor([0.3, -0.4], dtype=torch.float64)
    # u = (1 - (q_0 - q_1) / 2) / 2 and 1 - u: a function of one number.
    u, slope = 0.5 * (1 - (q[0] - q[1]) / 2), torch.tensor([-0.25, 0.25], dtype=torch.float64)
    expected = 6 * (u + (1 - u)) * torch.outer(slope, slope)
    torch.testing.assert_close(torch.func.hessian(cost)(q), expected, rtol=1e-9, atol=1e-12)


def test_one_factorisation_serves_answer_backward_and_double_backward(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("daqp")
    counts = []
    original = answer.factor_active
    monkeypatch.setattr(answer, "factor_active", lambda *a: counts.append(1) or original(*a))
    six = [t.requires_grad_() for t in programs(4, 1, 5)]
    u = quadratic_program(*six)
    grads = torch.autograd.grad(u.square().sum(), six, create_graph=True)
    torch.autograd.grad(sum(g.sum() for g in grads), six)
    assert len(counts) == 1
