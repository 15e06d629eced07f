"""Tensors that functions use without declaring them get their gradient too, of any order, or an error that says so."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jacfwd, jacrev, jvp, vmap
from torch.testing import assert_close

import tacit
from node.cases import gradient, inputs
from tacit.errors import CapturedTensorError
from tacit.node.captured import declare_captured, find_captured
from tacit.shapes import Tensor

x = inputs()


def shrink(w: Tensor) -> tacit.Problem:
    """y = x / (1 + w), with w captured by the closure."""
    return tacit.Problem(lambda x, u: (u - x).square().sum() + (w * u.square()).sum())


def weights() -> Tensor:
    return torch.tensor([0.5, 1.0, 2.0], dtype=x.dtype, requires_grad=True)


def test_a_captured_parameter_gets_the_sum_over_the_batch():
    w = weights()
    assert_close(gradient(tacit.argmin(shrink(w), x, start=x), w)[0], gradient(x / (1 + w), w)[0])


def test_a_captured_tensor_and_an_input_get_their_gradients_together():
    w, z = weights(), x.clone().requires_grad_()
    y = tacit.argmin(shrink(w), z, start=x)
    for found, expected in zip(gradient(y, z, w), gradient(z / (1 + w), z, w), strict=True):
        assert_close(found, expected)


def test_first_and_second_derivatives_of_a_captured_tensor_pass_gradcheck():
    z = x[:2]

    def solution(w: Tensor) -> Tensor:
        return tacit.argmin(shrink(w), z, start=z)

    assert gradcheck(solution, weights())
    assert gradgradcheck(solution, weights())


def test_a_captured_tensor_that_is_no_leaf_passes_its_gradient_on():
    v = weights()
    w = v.square() + 1
    assert_close(gradient(tacit.argmin(shrink(w), x, start=x), v)[0], gradient(x / (2 + v.square()), v)[0])


def test_mixed_second_derivatives_of_input_and_captured_tensor_are_right():
    def mixed(y: Tensor, z: Tensor, w: Tensor) -> Tensor:
        (g,) = torch.autograd.grad((y * torch.cos(z)).sum(), z, create_graph=True)
        return torch.autograd.grad(g.square().sum(), w)[0]

    w, z = weights(), x.clone().requires_grad_()
    found = mixed(tacit.argmin(shrink(w), z, start=x), z, w)
    assert_close(found, mixed(z / (1 + w), z, w))


def test_every_function_of_the_problem_is_watched():
    a, b, c = (torch.tensor(v, dtype=x.dtype, requires_grad=True) for v in (0.3, 0.2, 0.1))
    problem = tacit.Problem(
        lambda x, u: (u - a * x).square().sum(),
        equality=lambda x, u: (u[0] - b)[None],
        inequality=lambda x, u: (u[1] + 5 + c)[None],  # u_1 <= -5 - c, active everywhere
    )
    z = torch.ones(2, 3, dtype=x.dtype)
    y = tacit.argmin(problem, z, start=z)
    assert_close(y.detach(), torch.tensor([[0.2, -5.1, 0.3]], dtype=x.dtype).expand(2, 3), rtol=0, atol=1e-8)
    found = torch.autograd.grad((y * torch.tensor([1.0, 10.0, 100.0], dtype=x.dtype)).sum(), (a, b, c))
    assert_close(torch.stack(found), torch.tensor([200.0, 2.0, -20.0], dtype=x.dtype))


def test_a_module_in_a_closure_or_a_list_gets_its_gradients():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)).double()
    layers = [model[0], model[1], model[2]]

    def target(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x)
        return x

    for function in (model, target):
        problem = tacit.Problem(lambda x, u, f=function: (u - f(x)).square().sum())
        y = tacit.argmin(problem, x, start=x)
        expected = gradient(model(x), *model.parameters())
        for found, wanted in zip(gradient(y, *model.parameters()), expected, strict=True):
            assert_close(found, wanted)


def test_tensors_in_lists_dicts_and_keywords_are_seen():
    a, b, c = weights(), weights(), weights()
    problem = tacit.Problem(
        lambda x, u: (
            (u - torch.stack([a, b]).sum(0) - torch.add(input=x, other=c)).square().sum()
            + 0 * torch.cat(tensors=[a, b]).sum()
        )
    )
    y = tacit.argmin(problem, x, start=x)
    assert_close(y.detach(), x + 3 * weights().detach())
    for found in gradient(y, a, b, c):
        assert_close(found, gradient(x + a, a)[0])


def test_a_captured_tensor_that_needs_no_gradient_is_a_constant():
    assert not tacit.argmin(shrink(weights().detach()), x, start=x).requires_grad
    with torch.no_grad():
        assert not tacit.argmin(shrink(weights()), x, start=x).requires_grad


def test_the_value_and_the_jacobian_see_captured_tensors():
    w = weights()
    v = tacit.value(shrink(w), x, start=x)
    y = x / (1 + w)
    assert_close(gradient(v, w)[0], gradient(((y - x).square() + w * y.square()).sum(1), w)[0])
    J = tacit.jacobian(shrink(w), x, y=y)
    assert_close(gradient(J, w)[0], gradient(torch.diag_embed(1 / (1 + w)).expand(4, 3, 3), w)[0])


def test_a_custom_solver_and_captured_tensors_go_together():
    w = weights()
    y = tacit.argmin(shrink(w), x, solver=lambda x: x / (1 + w))
    assert_close(gradient(y, w)[0], gradient(x / (1 + w), w)[0])


def test_a_captured_tensor_of_a_node_travels_beside_its_parameters():
    w = weights()

    class Shrink(tacit.Node):
        def __init__(self):
            super().__init__()
            self.v = torch.nn.Parameter(torch.ones(3, dtype=x.dtype))

        def objective(self, x: Tensor, u: Tensor) -> Tensor:
            return (self.v * (u - x).square()).sum() + (w * u.square()).sum()

        def start(self, x: Tensor) -> Tensor:
            return x

    node = Shrink()
    for found, expected in zip(
        gradient(node(x), node.v, w), gradient(node.v * x / (node.v + w), node.v, w), strict=True
    ):
        assert_close(found, expected)


def test_plain_closures_work_under_transforms_of_the_inputs():
    w = weights()

    def of_one(x: Tensor) -> Tensor:
        return tacit.argmin(shrink(w), x[None], start=x[None])[0]

    assert_close(vmap(jacrev(of_one))(x).detach(), torch.diag_embed(1 / (1 + w)).expand(4, 3, 3).detach())
    assert_close(vmap(jacfwd(of_one))(x).detach(), torch.diag_embed(1 / (1 + w)).expand(4, 3, 3).detach())


def test_under_a_transform_of_the_inputs_plain_autograd_still_reaches_the_captured_tensor():
    w = weights()
    J = jacrev(lambda x: tacit.argmin(shrink(w), x[None], start=x[None])[0])(x[0])
    assert_close(gradient(J, w)[0], gradient(torch.diag_embed(1 / (1 + w)), w)[0])
    y = vmap(lambda x: tacit.argmin(shrink(w), x[None], start=x[None])[0])(x)
    assert_close(gradient(y, w)[0], gradient(x / (1 + w), w)[0])


@pytest.mark.parametrize("transform", [grad, jacrev, jacfwd, vmap], ids=lambda t: t.__name__)
def test_a_captured_tensor_that_a_transform_has_wrapped_is_refused_with_advice(transform):
    def total(w: Tensor) -> Tensor:
        return tacit.argmin(shrink(w), x, start=x).sum()

    with pytest.raises(CapturedTensorError, match=r"silently wrong.*argmin\(problem, x, w, in_dims=\(0, None\)\)"):
        transform(total)(weights().detach() if transform is not vmap else torch.ones(2, 3, dtype=x.dtype))


def test_a_wrapped_tensor_in_a_constraint_or_under_jvp_is_refused_too():
    def total(w: Tensor) -> Tensor:
        bounded = tacit.Problem(lambda x, u: (u - x).square().sum(), inequality=lambda x, u: u - w)
        return tacit.argmin(bounded, x, start=x).sum()

    w = weights().detach()
    for call in (lambda: grad(total)(w), lambda: jvp(total, (w,), (w,))):
        with pytest.raises(CapturedTensorError):
            call()


def test_the_advice_helps():
    shrink_declared = tacit.Problem(lambda x, w, u: (u - x).square().sum() + (w * u.square()).sum())

    def total(w: Tensor) -> Tensor:
        return tacit.argmin(shrink_declared, x, w, start=x, in_dims=(0, None)).sum()

    w = weights().detach()
    assert_close(grad(total)(w), grad(lambda w: (x / (1 + w)).sum())(w))


@pytest.mark.parametrize("how", ["captured", "input", "parameter"])
def test_a_tensor_that_reaches_a_node_inside_a_node_gets_its_gradient(how: str):
    """The inner y is x / (1 + w); the outer one is its double."""

    class Inner(tacit.Node):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(weights().detach())

        def objective(self, x: Tensor, u: Tensor) -> Tensor:
            return shrink(self.w).objective(x, u)

    node = Inner()
    w = node.w if how == "parameter" else weights()
    declared = tacit.Problem(lambda x, w, u: (u - x).square().sum() + (w * u.square()).sum())

    def outer(x: Tensor, u: Tensor) -> Tensor:
        start = x[None].detach()
        if how == "captured":
            y = tacit.argmin(shrink(w), x[None], start=start)
        elif how == "input":
            y = tacit.argmin(declared, x[None], w, start=start, in_dims=(0, None))
        else:
            y = node(x[None], start=start)
        return (u - 2 * y[0]).square().sum()

    z = x[:2].clone().requires_grad_()
    y, expected = tacit.argmin(tacit.Problem(outer), z, start=z), 2 * z / (1 + w)
    for found, wanted in zip(gradient(y, z, w), gradient(expected, z, w), strict=True):
        assert_close(found, wanted)


def test_transforms_inside_a_function_are_its_own_business():
    """y minimises u' H u / 2 - x' u with H the Hessian of a quartic that a captured tensor scales."""
    w = weights()

    def hessian(x: Tensor) -> Tensor:
        return torch.func.hessian(lambda v: (w * v.pow(4)).sum() + v.square().sum())(x)

    problem = tacit.Problem(lambda x, u: 0.5 * (u * vmap(lambda row: row @ u)(hessian(x))).sum() - x @ u)
    z = x.clone().requires_grad_()
    y, expected = tacit.argmin(problem, z, start=z), z / (12 * w * z.square() + 2)
    assert_close(y, expected)
    for found, wanted in zip(gradient(y, z, w), gradient(expected, z, w), strict=True):
        assert_close(found, wanted)


def test_a_captured_tensor_given_to_a_transform_inside_the_function_is_refused_with_advice():
    w = weights()
    hidden = tacit.Problem(lambda x, u: (u - x).square().sum() + vmap(lambda v: v.square())(w) @ u)
    with pytest.raises(CapturedTensorError, match=r"transform of its own.*1 \* w"):
        tacit.argmin(hidden, x, start=x)
    seen = tacit.Problem(lambda x, u: (u - x).square().sum() + vmap(lambda v: v.square())(1 * w) @ u)
    assert_close(gradient(tacit.argmin(seen, x, start=x), w)[0], gradient(x - w.square() / 2, w)[0])


def test_tensors_are_found_once_and_replaced_wherever_they_are_used():
    w = weights()
    problem = tacit.Problem(lambda x, u: (w * u).sum() + (w * w).sum(), equality=lambda x, u: torch.stack([u[0], w[1]]))
    point = x[0]
    (found,) = find_captured(problem, lambda function: function(point, point))
    assert found is w
    lifted = declare_captured(problem, (w,))
    other = torch.ones(3, dtype=x.dtype)
    assert_close(lifted.objective(other, point, point), point.sum() + 3)
    assert_close(lifted.equality(other, point, point), torch.stack([point[0], other[1]]))
    assert declare_captured(problem, ()) is problem
    assert lifted.inequality is None


def test_a_tensor_inside_of_a_shared_argument_gets_its_gradient():
    problem = tacit.Problem(lambda x, how, u: (u - how["weights"][0] * x).square().sum())
    x = inputs()
    w = torch.ones(3, dtype=torch.float64).requires_grad_()
    y = tacit.argmin(problem, x, {"weights": [w]}, start=x, in_dims=(0, None))
    torch.testing.assert_close(torch.autograd.grad(y.sum(), w)[0], x.sum(0))
