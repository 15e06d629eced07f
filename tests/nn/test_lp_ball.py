"""The layer keeps the contract for each kind of norm; its radius is what it was given. DDN[lp-projection]"""

from __future__ import annotations

import math

import pytest
import torch

from tacit.errors import OptionError, OptionTypeError
from tacit.nn import LpBall
from tacit.nn.functional import lp_ball
from tacit.testing import NodeContract

X = torch.tensor([[2.0, 0.75, -1.3, 0.4], [0.3, -0.11, 0.2, 0.17], [-0.5, 3.0, 0.9, -2.2]])
P = [1.0, 1.5, 2.0, 3.0, math.inf]


class _Ball(NodeContract):
    """Two points outside, one inside; the radius is learned."""

    p = 2.0
    plateau = "zero"
    compiles = "fullgraph"
    problem_in_dims = (0, None)

    def build(self):
        return LpBall(self.p, torch.nn.Parameter(torch.tensor(1.2)), plateau=self.plateau)

    def inputs(self):
        return (X,)

    def problem_inputs(self, layer, x):
        return x, layer.radius


class TestL1(_Ball):
    p = 1.0


class TestL2(_Ball):
    p = 2.0


class TestLinf(_Ball):
    p = math.inf


class TestAboveTwo(_Ball):
    p = 3.0


class TestPerSample(_Ball):
    """The radius comes in with the sample."""

    problem_in_dims = None

    def build(self):
        return LpBall(self.p)

    def inputs(self):
        return X, torch.tensor([1.2, 1.7, 2.0])

    def call(self, layer, x, radius):
        return lp_ball(x, layer.p, radius)

    def problem_inputs(self, layer, x, radius):
        return x, radius


@pytest.mark.parametrize("plateau", ["zero", "printed"])
@pytest.mark.parametrize("p", P)
def test_the_layer_is_the_function(p, plateau):
    layer = LpBall(p, 1.3, 1, plateau=plateau)
    x = torch.stack([X, 2 * X], 2).requires_grad_()
    v = torch.cos(torch.arange(x.numel()).reshape(x.shape).float())
    y, same = layer(x), lp_ball(x, p, 1.3, 1, plateau=plateau)
    assert torch.equal(y, same)
    assert torch.equal(*(torch.autograd.grad(out, x, v)[0] for out in (y, same)))


def test_a_parameter_is_learned_and_a_tensor_is_a_buffer():
    learned = LpBall(2, torch.nn.Parameter(torch.tensor(1.5)))
    assert [name for name, _ in learned.named_parameters()] == ["radius"]
    learned(X).square().sum().backward()
    assert learned.radius.grad > 0
    kept = LpBall(2, torch.tensor([1.0, 2.0, 3.0]))
    assert [name for name, _ in kept.named_buffers()] == ["radius"] and not list(kept.parameters())
    torch.testing.assert_close(kept(10 * X).norm(dim=1), kept.radius)


def test_a_radius_is_learned_by_descent():
    layer = LpBall(2, torch.nn.Parameter(torch.tensor(1.0)))
    wanted = lp_ball(10 * X, 2, 2.5)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(20):
        optimiser.zero_grad()
        (layer(10 * X) - wanted).square().sum().backward()
        optimiser.step()
    assert abs(layer.radius.item() - 2.5) < 1e-5


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("p", P)
def test_an_exported_layer_answers_alike(p):
    layer = LpBall(p, torch.nn.Parameter(torch.tensor(1.2)))
    exported = torch.export.export(layer, (X,)).module()
    torch.testing.assert_close(exported(2 * X), layer(2 * X))


def test_it_says_what_it_is():
    assert repr(LpBall(2)) == "LpBall(p=2, radius=1.0, dim=-1, plateau='zero')"
    assert "radius=tensor(3,)" in repr(LpBall(2, torch.ones(3)))


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"p": 0.5}, OptionError, "p expects a number of 1 or more"),
        ({"p": math.nan}, OptionError, "p expects a number of 1 or more"),
        ({"p": "2"}, OptionTypeError, "p expects a number"),
        ({"p": 2, "plateau": "prnted"}, OptionError, "printed"),
        ({"p": 2, "radius": -1.0}, OptionError, "radius expects a positive"),
        ({"p": 2, "radius": "1"}, OptionTypeError, "radius expects a positive number"),
        ({"p": 2, "dim": (0, 1)}, OptionTypeError, "dim expects one integer"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_the_layer_is_built(options, error, message):
    with pytest.raises(error, match=message):
        LpBall(**options)
