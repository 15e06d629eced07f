"""A Node's parameters and buffers are inputs like any other: their gradients are exact, under every transform."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, grad, jacfwd, jacrev, stack_module_state, vmap
from torch.testing import assert_close

import tacit
from node.cases import gradient, inputs
from tacit.errors import InputTypeError
from tacit.node.binding import bind, declares_problem
from tacit.shapes import Tensor

x = inputs()


class Shrink(tacit.Node):
    """y = v x / (v + w), with v a parameter and w a buffer."""

    def __init__(self, v: float = 0.7, **options: object):
        super().__init__(**options)
        self.v = torch.nn.Parameter(torch.tensor([v, 1.0, 2.0], dtype=x.dtype))
        self.register_buffer("w", torch.tensor(0.5, dtype=x.dtype))

    def objective(self, x: Tensor, u: Tensor) -> Tensor:
        return (self.v * (u - x).square()).sum() + self.w * u.square().sum()

    def start(self, x: Tensor) -> Tensor:
        return x

    def closed(self, x: Tensor) -> Tensor:
        return self.v * x / (self.v + self.w)


class Deep(Shrink):
    """Its objective calls a network of its own, and its solution is found in numpy."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()).to(x.dtype)

    def objective(self, x: Tensor, u: Tensor) -> Tensor:
        return (u - self.net(x)).square().sum()

    def solve(self, x: Tensor) -> object:
        return self.net(x).numpy()

    def closed(self, x: Tensor) -> Tensor:
        return self.net(x)


every_node = pytest.mark.parametrize("node", [Shrink(), Deep()], ids=["start", "solve"])


@every_node
def test_parameters_get_the_gradient_of_the_closed_form(node: Shrink):
    z = x.clone().requires_grad_()
    leaves = (z, *(p for p in node.parameters() if gradient_reaches(node, p)))
    for found, expected in zip(gradient(node(z), *leaves), gradient(node.closed(z), *leaves), strict=True):
        assert_close(found, expected)


def gradient_reaches(node: Shrink, parameter: Tensor) -> bool:
    return torch.autograd.grad(node.closed(x).sum(), parameter, allow_unused=True)[0] is not None


def test_first_and_second_derivatives_in_parameters_pass_gradcheck():
    node = Shrink()

    def of(v: Tensor, w: Tensor) -> Tensor:
        return functional_call(node, {"v": v, "w": w}, (x[:2],))

    leaves = (node.v.detach().requires_grad_(), node.w.clone().requires_grad_())
    assert gradcheck(of, leaves)
    assert gradgradcheck(of, leaves)


@every_node
def test_functional_call_under_grad_equals_autograd(node: Shrink):
    parameters = {name: p.detach() for name, p in node.named_parameters()}
    found = grad(lambda p: functional_call(node, p, (x,)).square().sum())(parameters)
    expected = grad(
        lambda p: functional_call(Closed(node), {f"node.{k}": v for k, v in p.items()}, (x,)).square().sum()
    )
    for name, wanted in expected(parameters).items():
        assert_close(found[name], wanted)


class Closed(torch.nn.Module):
    """The closed form of a node as a module, for comparison."""

    def __init__(self, node: Shrink):
        super().__init__()
        self.node = node

    def forward(self, x: Tensor) -> Tensor:
        return self.node.closed(x)


@pytest.mark.parametrize("transform", [jacrev, jacfwd], ids=["jacrev", "jacfwd"])
def test_jacobians_in_parameters_are_those_of_the_closed_form(transform):
    node = Shrink()
    v = node.v.detach()
    found = transform(lambda v: functional_call(node, {"v": v}, (x,)))(v)
    assert_close(found, transform(lambda v: v * x / (v + node.w))(v))


def test_an_ensemble_under_vmap_equals_one_node_at_a_time():
    nodes = [Shrink(v) for v in (0.2, 0.7, 1.5)]
    parameters, buffers = stack_module_state(nodes)
    base = copy.deepcopy(nodes[0])

    def call(p: dict, b: dict, x: Tensor) -> Tensor:
        return functional_call(base, (p, b), (x,))

    found = vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    assert_close(found, torch.stack([node(x) for node in nodes]))
    slopes = vmap(grad(lambda p, b, x: call(p, b, x).square().sum()), in_dims=(0, 0, None))(parameters, buffers, x)
    for i, node in enumerate(nodes):
        (expected,) = torch.autograd.grad(node(x).square().sum(), node.v)
        assert_close(slopes["v"][i], expected)


def test_gradients_of_each_sample_in_the_parameters_by_vmap_of_grad():
    node = Shrink()
    v = node.v.detach()

    def loss(v: Tensor, x: Tensor) -> Tensor:
        return functional_call(node, {"v": v}, (x[None],)).square().sum()

    expected = vmap(grad(lambda v, x: (v * x / (v + node.w)).square().sum()), in_dims=(None, 0))(v, x)
    assert_close(vmap(grad(loss), in_dims=(None, 0))(v, x), expected)


def test_a_node_stands_wherever_a_problem_does():
    node = Shrink()
    y = node.closed(x)
    assert_close(tacit.argmin(node, x), node(x))
    assert_close(tacit.solve(node, x).y, y.detach())
    assert_close(tacit.jacobian(node, x, y=y), torch.diag_embed((node.v / (node.v + node.w)).expand(4, 3)))
    assert tacit.regularity(node, x, y=y).flags.tolist() == [0, 0, 0, 0]
    expected = (node.v * (y - x).square() + node.w * y.square()).sum(1)
    v = tacit.value(node, x)
    assert_close(v, expected)
    assert_close(gradient(v, node.v)[0], gradient(expected, node.v)[0])


def test_a_module_or_parameter_that_is_registered_twice_is_lifted_once_and_stays_what_it_was():
    node = Deep()
    node.again = node.net
    node.twin = torch.nn.Linear(3, 3, bias=False)
    node.twin.weight = node.net[0].weight
    node.tied = node.v
    parameters = tuple(node.parameters())
    assert bind(node, (x,), 0).extras == len(parameters) + 1  # and the buffer
    weight = node.net[0].weight
    (found,) = gradient(node(x), weight)
    assert all(a is b for a, b in zip(node.parameters(), parameters, strict=True))
    assert_close(found, gradient(node.net(x), weight)[0])

    class Tied(Deep):
        def objective(self, x: Tensor, u: Tensor) -> Tensor:
            return (u - self.net(x) - self.twin(x) - self.tied).square().sum()

        def solve(self, x: Tensor) -> Tensor:
            return self.net(x) + self.twin(x) + self.tied

    tied = Tied()
    tied.tied = tied.v
    tied.twin = torch.nn.Linear(3, 3, bias=False)
    tied.twin.weight = tied.net[0].weight
    leaves = (tied.twin.weight, tied.v)
    for found, expected in zip(gradient(tied(x), *leaves), gradient(tied.solve(x), *leaves), strict=True):
        assert_close(found, expected)


def test_a_frozen_parameter_gets_no_gradient():
    node = Shrink()
    node.v.requires_grad_(False)
    z = x.clone().requires_grad_()
    node(z).sum().backward()
    assert node.v.grad is None and z.grad is not None


def test_values_and_dims_of_a_node_come_before_those_of_the_caller():
    bound = bind(Shrink(), (x,), 0)
    assert bound.extras == 2 and bound.in_dims == (None, None, 0)
    assert [tuple(v.shape) for v in bound.values] == [(3,), (), (4, 3)]
    assert_close(bound.problem.objective(*bound.values[:2], x[0], x[0]), 0.5 * x[0].square().sum())
    values, dims = bound.with_tensors(tuple(2 * t for t in bound.tensors), (0, 0, 0))
    assert_close(values[2], 2 * x) and dims == (0, 0, 0)


def test_only_modules_with_a_function_declare_a_problem():
    assert declares_problem(Shrink())
    assert (
        not declares_problem(torch.nn.Linear(2, 2)) and not declares_problem(tacit.Problem) and not declares_problem(3)
    )


@pytest.mark.untyped
def test_a_role_that_is_no_method_is_refused_by_name():
    node = Shrink()
    node.equality = 3.0
    with pytest.raises(InputTypeError, match=r"Shrink\.equality expects a method.*3\.0"):
        node(x)
