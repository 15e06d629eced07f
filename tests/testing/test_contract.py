"""The contract passes for layers that keep it, and each test of it fails for a layer that does not."""

from __future__ import annotations

from unittest import SkipTest

import pytest
import torch

import tacit
from tacit.shapes import Tensor
from tacit.testing import NodeContract

X = torch.tensor([[0.9, 0.5, -3.0], [0.2, 0.1, 0.4], [-1.0, 2.0, 1.5]])


class Shrink(tacit.Node):
    """A declared layer with a parameter and a shared input."""

    def __init__(self):
        super().__init__(in_dims=(0, None))
        self.weight = torch.nn.Parameter(torch.tensor(0.7))

    def objective(self, x: Tensor, w: Tensor, u: Tensor) -> Tensor:
        return (u - w * x).square().sum() + self.weight * u.square().sum() + 0.1 * u.pow(4).sum()

    def start(self, x: Tensor, w: Tensor) -> Tensor:
        return x


class ClosedForm(torch.nn.Module):
    """The Euclidean projection onto the unit ball, beside what it declares."""

    def forward(self, x: Tensor) -> Tensor:
        return x / x.norm(dim=1, keepdim=True).clamp_min(1.0)

    def problem(self) -> tacit.Problem:
        return tacit.Problem(
            lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: u.square().sum()[None] - 1
        )


class TestNode(NodeContract):
    in_dims = (0, None)

    def build(self):
        return Shrink()

    def inputs(self):
        return X, torch.tensor([1.0, 2.0, 0.5])


class TestClosedForm(NodeContract):
    compiles = "fullgraph"

    def build(self):
        return ClosedForm()

    def inputs(self):
        return (X,)


class _Contract(NodeContract):
    """Of a closed form that is broken in one way."""

    def __init__(self, forward):
        self.broken = forward

    def build(self):
        layer = ClosedForm()
        layer.forward = self.broken
        return layer

    def inputs(self):
        return (X,)


def right(x: Tensor) -> Tensor:
    return ClosedForm.forward(None, x)


def off(x: Tensor) -> Tensor:
    return right(x) + 1e-4


def detached_scale(x: Tensor) -> Tensor:
    return x / x.detach().norm(dim=1, keepdim=True).clamp_min(1.0)


def sees_its_neighbours(x: Tensor) -> Tensor:
    return right(x) + 0.1 * x.mean(0)


def spreads_nan(x: Tensor) -> Tensor:
    return right(x) + 0.0 * x.mean()


def refuses_nothing(x: Tensor) -> Tensor:
    return right(x) + 0.0 * x.amax()


def looks_at_storage(x: Tensor) -> Tensor:
    return right(x.detach().as_strided(x.shape, (x.shape[1], 1)) + x - x.detach())


def writes(x: Tensor) -> Tensor:
    y = right(x)
    x.data.add_(1.0)
    return y


def always_float64(x: Tensor) -> Tensor:
    return right(x).double()


def decides(x: Tensor) -> Tensor:
    return right(x) if bool((x > -99).all()) else x


BROKEN = {
    off: ["test_the_solution_is_that_of_the_declared_problem"],
    detached_scale: [
        "test_the_gradient_is_that_of_the_declared_problem",
        "test_the_gradient_is_that_of_finite_differences",
    ],
    sees_its_neighbours: ["test_a_batch_of_one_is_its_first_sample", "test_vmap_is_the_batch"],
    spreads_nan: ["test_a_sample_of_nan_leaves_the_others_alone"],
    refuses_nothing: ["test_an_empty_batch_gives_an_empty_answer"],
    looks_at_storage: ["test_strides_do_not_matter"],
    writes: ["test_inputs_are_left_as_they_were"],
    always_float64: ["test_float32_is_exact_to_its_precision"],
    decides: ["test_vmap_is_the_batch"],
}


@pytest.mark.parametrize(
    ("forward", "name"),
    [(f, name) for f, names in BROKEN.items() for name in names],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_a_layer_that_breaks_a_promise_fails(forward, name):
    contract = _Contract(forward)
    with pytest.raises((AssertionError, RuntimeError, IndexError)):
        getattr(contract, name)()


def test_a_promise_that_is_not_made_is_not_tested():
    contract = _Contract(decides)
    contract.vectorises = False
    with pytest.raises(SkipTest, match="vmap"):
        contract.test_vmap_is_the_batch()


def test_a_contract_without_a_layer_says_what_to_write():
    with pytest.raises(NotImplementedError, match=r"build\(self\)"):
        NodeContract().test_vmap_is_the_batch()
