"""Every transform of torch sees through a node: the derivative it finds is that of `tacit.jacobian`."""

from __future__ import annotations

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.testing import assert_close

import tacit
from node.cases import CASES, Case, ball, every_case, inputs, jacobian
from tacit.shapes import Tensor

TIGHT = {"rtol": 1e-9, "atol": 1e-10}


@every_case
def test_gradcheck_and_gradgradcheck_hold(case: Case):
    x = case.x[1::2].clone().requires_grad_()
    assert gradcheck(case.near(x), x, atol=1e-6)
    assert gradgradcheck(case.near(x), x, atol=1e-6)


@every_case
def test_gradcheck_holds_in_forward_mode_and_for_batched_gradients(case: Case):
    x = case.x[3:].clone().requires_grad_()
    batched = {"check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(case.near(x), x, atol=1e-6, check_forward_ad=True, **batched)


@every_case
def test_gradgradcheck_holds_for_every_order_of_modes(case: Case):
    x = case.x[3:].clone().requires_grad_()
    assert gradgradcheck(case.near(x), x, atol=1e-6, check_fwd_over_rev=True, check_rev_over_rev=True)


@every_case
def test_jacrev_and_jacfwd_of_the_batch_are_block_diagonal(case: Case):
    expected = torch.zeros(4, 3, 4, 3, dtype=torch.float64)
    for i, block in enumerate(jacobian(case, case.x)):
        expected[i, :, i] = block
    assert_close(jacrev(case.argmin)(case.x), expected, **TIGHT)
    assert_close(jacfwd(case.argmin)(case.x), expected, **TIGHT)


@every_case
def test_vmap_over_samples_equals_the_batch(case: Case):
    assert_close(vmap(case.of_one)(case.x), case.argmin(case.x), **TIGHT)


@every_case
@pytest.mark.parametrize("transform", [jacrev, jacfwd], ids=["jacrev", "jacfwd"])
def test_vmap_of_a_jacobian_equals_the_jacobian_of_the_batch(case: Case, transform):
    assert_close(vmap(transform(case.of_one))(case.x), jacobian(case, case.x), **TIGHT)


@every_case
def test_nested_vmap_equals_one_large_batch(case: Case):
    x = torch.stack([case.x, 0.9 * case.x, 1.1 * case.x])
    assert_close(vmap(vmap(case.of_one))(x), case.argmin(x.reshape(12, 3)).reshape(3, 4, 3), **TIGHT)
    found = vmap(vmap(jacrev(case.of_one)), in_dims=1)(x)
    assert_close(found, jacobian(case, x.reshape(12, 3)).reshape(3, 4, 3, 3).transpose(0, 1), **TIGHT)


@every_case
def test_second_derivatives_agree_whichever_way_they_are_taken(case: Case):
    x = case.x[2]

    def scalar(x: Tensor) -> Tensor:
        return (case.of_one(x) * torch.tensor([1.0, -0.5, 2.0], dtype=x.dtype)).sum()

    step = 1e-5
    axes = torch.eye(3, dtype=x.dtype)
    expected = torch.stack([(grad(scalar)(x + step * e) - grad(scalar)(x - step * e)) / (2 * step) for e in axes])
    for second in (hessian, lambda f: jacrev(grad(f)), lambda f: jacrev(jacrev(f)), lambda f: jacfwd(jacfwd(f)),
                   lambda f: jacrev(jacfwd(f))):  # fmt: skip
        assert_close(second(scalar)(x), expected, rtol=1e-6, atol=1e-7)


@every_case
def test_the_hessian_of_a_batch_under_vmap_equals_the_one_by_one(case: Case):
    def scalar(x: Tensor) -> Tensor:
        return case.of_one(x).pow(3).sum()

    assert_close(vmap(hessian(scalar))(case.x), torch.stack([hessian(scalar)(x) for x in case.x]), **TIGHT)


@every_case
def test_jvp_and_vjp_are_the_two_sides_of_the_jacobian(case: Case):
    J = jacobian(case, case.x)
    t = torch.cos(case.x)
    assert_close(jvp(case.argmin, (case.x,), (t,))[1], (J @ t[..., None])[..., 0], **TIGHT)
    assert_close(vjp(case.argmin, case.x)[1](t)[0], (J.mT @ t[..., None])[..., 0], **TIGHT)


@every_case
def test_dual_numbers_carry_the_tangent(case: Case):
    t = torch.cos(case.x)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(case.argmin(forward_ad.make_dual(case.x, t))).tangent
    assert_close(tangent, (jacobian(case, case.x) @ t[..., None])[..., 0], **TIGHT)


@every_case
def test_is_grads_batched_gives_the_rows_of_the_jacobian(case: Case):
    x = case.x.clone().requires_grad_()
    y = case.argmin(x)
    rows = torch.eye(3, dtype=x.dtype)[:, None, :].expand(3, 4, 3)
    (found,) = torch.autograd.grad(y, x, rows, is_grads_batched=True)
    assert_close(found.transpose(0, 1), jacobian(case, case.x), **TIGHT)


@every_case
def test_the_jacobian_is_differentiable_itself(case: Case):
    x = case.x[1:3].clone().requires_grad_()
    assert gradcheck(lambda x: tacit.jacobian(case.problem, x, y=case.near(x)(x)), x, atol=1e-6)


@every_case
def test_third_derivatives_are_those_of_finite_differences(case: Case):
    x = case.x[2]

    def second(x: Tensor) -> Tensor:
        return jacrev(jacrev(case.of_one))(x)

    step = 1e-4
    expected = torch.stack([(second(x + step * e) - second(x - step * e)) / (2 * step) for e in torch.eye(3).to(x)], -1)
    assert_close(jacrev(second)(x), expected, rtol=1e-5, atol=1e-6)


def project(x: Tensor) -> Tensor:
    """The projection on the unit ball, in numpy."""
    found = x.numpy() / (x.numpy() ** 2).sum(1, keepdims=True).clip(1.0) ** 0.5
    return torch.from_numpy(found)


def test_a_numpy_solver_sees_plain_tensors_under_every_transform():
    x = inputs()
    expected = tacit.jacobian(ball, x, y=project(x))

    def of_one(x: Tensor) -> Tensor:
        return tacit.argmin(ball, x[None], solver=project)[0]

    assert_close(vmap(of_one)(x), project(x))
    assert_close(vmap(vmap(of_one))(x[None]), project(x)[None])
    for transform in (jacrev, jacfwd):
        assert_close(vmap(transform(of_one))(x), expected, **TIGHT)
        assert_close(vmap(vmap(transform(of_one)))(x[None]), expected[None], **TIGHT)
    second = vmap(jacrev(jacrev(of_one)))(x)
    assert_close(second, vmap(jacfwd(jacrev(of_one)))(x), **TIGHT)
    assert_close(second, vmap(jacfwd(jacfwd(of_one)))(x), **TIGHT)


def test_a_vmap_over_a_shared_input_equals_a_loop():
    x, w = inputs(), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    shrink = tacit.Problem(lambda x, w, u: (u - x).square().sum() + w * u.pow(4).sum())

    def of(w: Tensor) -> Tensor:
        return tacit.argmin(shrink, x, w, start=x, in_dims=(0, None))

    assert_close(vmap(of)(w), torch.stack([of(v) for v in w]), **TIGHT)
    assert_close(vmap(jacrev(of))(w), torch.stack([jacrev(of)(v) for v in w]), **TIGHT)
    assert_close(vmap(jacfwd(of))(w), torch.stack([jacrev(of)(v) for v in w]), **TIGHT)


def test_the_value_sees_transforms_too():
    x = inputs()
    case = CASES["inequality"]

    def of_one(x: Tensor) -> Tensor:
        return tacit.value(case.problem, x[None], start=x[None])[0]

    def direct(x: Tensor) -> Tensor:
        return case.problem.objective(x, case.of_one(x))

    assert_close(vmap(grad(of_one))(x), vmap(grad(direct))(x), **TIGHT)
    assert_close(vmap(jacfwd(of_one))(x), vmap(grad(direct))(x), **TIGHT)
    assert_close(vmap(hessian(of_one))(x), vmap(jacrev(jacrev(direct)))(x), **TIGHT)
    assert gradgradcheck(lambda x: tacit.value(case.problem, x, start=x), x.clone().requires_grad_(), atol=1e-6)
