"""The layer: its contract, and whose the matrices are. DDN[quadratic-program]"""

from __future__ import annotations

import pytest
import torch

from nn.functional.quadratic.cases import programs
from tacit.errors import InputTypeError
from tacit.nn import QuadraticProgram
from tacit.problem import Status
from tacit.testing import NodeContract


class TestQuadraticProgram(NodeContract):
    def build(self):
        return QuadraticProgram()

    def inputs(self):
        return tuple(programs(3, 1, 4))


class TestLearnedQuadraticProgram(NodeContract):
    """Q, A and G are the layer's, shared by all samples; q, b and h come in."""

    problem_in_dims = (None, 0, None, 0, None, 0)

    def build(self):
        six = programs(3, 1, 4)
        own = {name: torch.nn.Parameter(six[i][0].clone()) for i, name in ((0, "Q"), (2, "A"), (4, "G"))}
        return QuadraticProgram(**own)

    def inputs(self):
        q, b, h = (programs(3, 1, 4)[i] for i in (1, 3, 5))
        return q, b, h.abs() + 2.0

    def call(self, layer, q, b, h):
        return layer(q=q, b=b, h=h)

    def problem_inputs(self, layer, q, b, h):
        return layer.Q, q, layer.A, b, layer.G, h


def test_a_parameter_is_learned_and_a_tensor_is_a_buffer():
    layer = QuadraticProgram(Q=torch.nn.Parameter(torch.eye(2)), G=torch.eye(2), h=torch.ones(2))
    assert [name for name, _ in layer.named_parameters()] == ["Q"]
    assert sorted(name for name, _ in layer.named_buffers()) == ["G", "h"]
    layer(q=torch.tensor([[-3.0, 1.0]])).sum().backward()
    torch.testing.assert_close(layer.Q.grad, torch.tensor([[0.0, -0.5], [-0.5, 1.0]]))


def test_what_a_call_gives_goes_before_what_the_layer_has():
    layer = QuadraticProgram(Q=torch.eye(1), q=torch.tensor([-1.0]))
    assert layer().tolist() == [1.0]
    assert layer(q=torch.tensor([-2.0])).tolist() == [2.0]


def test_all_that_is_known_is_at_hand():
    layer = QuadraticProgram(Q=torch.eye(2), G=torch.eye(2), h=torch.ones(2))
    s = layer.solve(q=torch.tensor([[-3.0, 1.0]]))
    assert s.status.tolist() == [Status.CONVERGED] and s.inequality.tolist() == [[-2.0, 0.0]]


def test_a_state_dict_carries_the_matrices():
    layer, other = (QuadraticProgram(Q=torch.eye(2) * k, q=torch.ones(2)) for k in (1.0, 2.0))
    other.load_state_dict(layer.state_dict())
    assert other().tolist() == layer().tolist()


def test_it_says_what_it_has():
    assert repr(QuadraticProgram(Q=torch.eye(2))) == "QuadraticProgram(Q=(2, 2))"


@pytest.mark.untyped
def test_a_list_is_refused():
    with pytest.raises(InputTypeError, match="Q as a tensor"):
        QuadraticProgram(Q=[[1.0]])
