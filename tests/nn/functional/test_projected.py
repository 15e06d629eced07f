"""The single operation: its derivative, its second, its batching rule, and the scaled norm it rests on."""

from __future__ import annotations

import math

import pytest
import torch
from torch.func import jacrev, vmap

from nn.functional.lp_cases import generic_rows
from tacit.nn.functional.projected import Target, beyond_range, project, scaled_norm

F64 = torch.float64
TARGETS = [Target(kind, p, "zero") for kind in ("sphere", "ball") for p in (1.0, 2.0, math.inf)] + [
    Target("simplex", 1.0, "zero")
]
X = torch.tensor([[2.0, 0.75, -1.3], [0.3, -0.11, 0.2], [-0.5, 3.0, 0.9]], dtype=F64)
R = torch.tensor([[1.2], [0.9], [1.7]], dtype=F64)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_both_gradients_are_those_of_finite_differences(target):
    x, r = X.clone().requires_grad_(), R.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, r: project(x, r, target), (x, r))


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_backward_is_differentiable_itself(target):
    x, r = X.clone().requires_grad_(), R.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, r: project(x, r, target), (x, r))


@pytest.mark.parametrize("in_dims", [(0, 0), (1, None), (None, 0), (2, 1)])
@pytest.mark.parametrize("target", [TARGETS[1], TARGETS[3], TARGETS[6]], ids=str)
def test_mapped_rows_are_more_rows(target, in_dims):
    x = generic_rows(3, 12).reshape(4, 3, 3)
    r = torch.linspace(0.5, 2.0, 12, dtype=F64).reshape(4, 3, 1)
    given = [part[0] if at is None else part.movedim(0, at) for part, at in zip((x, r), in_dims, strict=True)]
    mapped = vmap(lambda x, r: project(x, r, target), in_dims=in_dims)(*given)
    for i in range(4):
        one = [part[0] if at is None else part[i] for part, at in zip((x, r), in_dims, strict=True)]
        torch.testing.assert_close(mapped[i], project(*one, target))


def test_mapping_goes_under_the_gradient_too():
    found = vmap(jacrev(lambda x, r: project(x[None], r[None], TARGETS[1])[0]))(X, R)
    direction = X / X.norm(dim=1, keepdim=True)
    tangent = torch.eye(3, dtype=F64) - direction[:, :, None] * direction[:, None, :]
    torch.testing.assert_close(found, R[..., None] * tangent / X.norm(dim=1)[:, None, None])


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_no_input_is_written_to(target):
    x, r = X.clone(), R.clone()
    project(x, r, target)
    assert torch.equal(x, X) and torch.equal(r, R)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_only_what_is_asked_for_is_returned(target):
    r = R.clone().requires_grad_()
    y = project(X, r, target)
    (grad,) = torch.autograd.grad(y.sum(), r)
    assert grad.shape == r.shape


def test_a_negative_zero_moves_upwards_like_any_zero():
    y = project(torch.tensor([[-0.0, 0.0]]), torch.ones(1, 1), Target("sphere", 1.0, "zero"))
    assert y.tolist() == [[0.5, 0.5]]


def test_the_scaled_norm_neither_overflows_nor_vanishes():
    x = torch.tensor([[3e200, 4e200], [3e-310, 4e-310], [0.0, 0.0], [3.0, -4.0]], dtype=F64)
    s, q = scaled_norm(x)
    torch.testing.assert_close(s[:, 0], torch.tensor([4e200, 4e-310, 1.0, 4.0], dtype=F64))
    torch.testing.assert_close(q[:, 0], torch.tensor([1.25, 1.25, 0.0, 1.25], dtype=F64))


def test_a_derivative_without_room_for_a_factor_is_beyond_the_range():
    factors = torch.tensor([[1.0], [1e300], [math.inf]], dtype=F64)
    assert beyond_range(factors)[:, 0].tolist() == [False, True, True]
