"""The layer keeps the contract; its answers are probabilities for radius 1. DDN[lp-projection]"""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.errors import OptionError, OptionTypeError
from tacit.nn import Simplex
from tacit.nn.functional import simplex
from tacit.testing import NodeContract

X = torch.tensor([[0.9, 0.5, -3.0, 0.25], [0.2, 0.1, 0.4, 0.3], [-1.0, 2.0, 1.5, 0.2]])


class TestSimplex(NodeContract):
    """Points of which none, one and two coordinates end at zero; the radius is learned."""

    compiles = "fullgraph"
    problem_in_dims = (0, None)

    def build(self):
        return Simplex(torch.nn.Parameter(torch.tensor(1.2)))

    def inputs(self):
        return (X,)

    def problem_inputs(self, layer, x):
        return x, layer.radius


class TestPerSample(NodeContract):
    """The radius comes in with the sample."""

    compiles = "fullgraph"

    def build(self):
        return Simplex()

    def inputs(self):
        return X, torch.tensor([1.2, 0.7, 2.0])

    def call(self, layer, x, radius):
        return simplex(x, radius)


def test_the_layer_is_the_function():
    x = torch.stack([X, 2 * X], 2)
    assert torch.equal(Simplex(1.3, 1)(x), simplex(x, 1.3, 1))


def test_the_answer_is_a_sparse_distribution():
    y = Simplex()(X)
    torch.testing.assert_close(y.sum(1), torch.ones(3))
    assert (y >= 0).all() and y[0, 2] == 0


def test_its_gradient_has_no_part_along_the_radius():
    x = X.double().requires_grad_()
    (grad,) = torch.autograd.grad(Simplex()(x)[:, 0].sum(), x)
    torch.testing.assert_close(grad.sum(1), torch.zeros(3, dtype=torch.float64))


def test_a_parameter_is_learned_and_a_tensor_is_a_buffer():
    assert [name for name, _ in Simplex(torch.nn.Parameter(torch.ones(()))).named_parameters()] == ["radius"]
    kept = Simplex(torch.tensor([1.0, 2.0, 3.0]))
    assert [name for name, _ in kept.named_buffers()] == ["radius"]
    torch.testing.assert_close(kept(X).sum(1), kept.radius)


@pytest.mark.slow
@pytest.mark.compile
def test_an_exported_layer_answers_alike():
    layer = Simplex(torch.nn.Parameter(torch.tensor(1.2)))
    torch.testing.assert_close(torch.export.export(layer, (X,)).module()(2 * X), layer(2 * X))


def test_the_declared_problem_holds_for_a_distribution_inside():
    x = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64)
    assert tacit.regularity(Simplex().problem(), x, x.new_ones(1), y=Simplex()(x)).flags.tolist() == [0]
    torch.testing.assert_close(Simplex()(x), x)


def test_it_says_what_it_is():
    assert repr(Simplex()) == "Simplex(radius=1.0, dim=-1)"
    assert repr(Simplex(torch.ones(3), 0)) == "Simplex(radius=tensor(3,), dim=0)"


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"radius": 0.0}, OptionError, "radius expects a positive"),
        ({"radius": "1"}, OptionTypeError, "radius expects a positive number"),
        ({"dim": (0, 1)}, OptionTypeError, "dim expects one integer"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_the_layer_is_built(options, error, message):
    with pytest.raises(error, match=message):
        Simplex(**options)
