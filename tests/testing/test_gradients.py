"""The gradient checks pass where the gradient is right and fail where it is not."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import tacit
from tacit.errors import InputTypeError
from tacit.shapes import Tensor
from tacit.testing import check_gradients, check_transforms, follow, gradients

X = torch.tensor([[0.3, -0.4], [2.0, 1.0]], dtype=torch.float64)
ball = tacit.Problem(lambda x, u: (u - x).square().sum(), inequality=lambda x, u: u.square().sum()[None] - 1)


def project(x: Tensor) -> Tensor:
    return x / x.norm(dim=1, keepdim=True).clamp_min(1.0)


class Careless(tacit.Node):
    """Its objective hides an input from autograd, so that its gradient is wrong."""

    def objective(self, x: Tensor, u: Tensor) -> Tensor:
        return (u - x.square() - x.detach()).square().sum()


class Shrink(tacit.Node):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(0.7, dtype=torch.float64))

    def objective(self, x: Tensor, u: Tensor) -> Tensor:
        return (u - x).square().sum() + self.weight * u.square().sum()


def test_a_right_gradient_passes():
    check_gradients(ball, X, y=project(X))
    check_transforms(ball, X, y=project(X))


def test_a_wrong_gradient_fails():
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        check_gradients(Careless(), X, y=X.square() + X)


def test_a_wrong_second_derivative_fails_only_where_it_is_looked_at():
    y = X.pow(3)

    def careless(x: Tensor, u: Tensor) -> Tensor:  # D_XY is right, its derivative is not
        return 0.5 * (u - x.detach().square() * (3 * x - 2 * x.detach())).square().sum()

    problem = tacit.Problem(careless)
    check_gradients(problem, X, y=y, second=False)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        check_gradients(problem, X, y=y)


def test_parameters_of_a_node_travel_along():
    check_gradients(Shrink(), X, y=X / 1.7)
    check_transforms(Shrink(), X, y=X / 1.7)


def test_shared_inputs_and_things_that_are_no_tensors_are_passed_through():
    w = torch.tensor([1.0, 2.0], dtype=torch.float64)
    power = tacit.Problem(lambda x, w, k, u: 0.5 * (u - w * x**k).square().sum())
    check_gradients(power, X.mT, w, 2, y=w * X**2, in_dims=(1, None, None))
    check_transforms(power, X.mT, w, 2, y=w * X**2, in_dims=(1, None, None))


def test_following_finds_the_solution_next_door_and_keeps_its_shape():
    scalar = tacit.Problem(None, equality=lambda x, u: (u.square() - x.sum())[None])
    x = X + 1
    solver = follow(scalar, x, y=x.sum(1).sqrt())
    assert_close(solver(x + 1e-3), (x + 1e-3).sum(1).sqrt(), rtol=1e-14, atol=1e-14)


def test_float32_is_refused_with_advice():
    with pytest.raises(InputTypeError, match=r"float64.*float32.*double"):
        check_gradients(ball, X.float(), y=project(X.float()))


def test_a_transform_that_disagrees_with_the_jacobian_fails(monkeypatch):
    monkeypatch.setattr(gradients, "jacobian", lambda *args, **options: 2 * tacit.jacobian(*args, **options))
    with pytest.raises(AssertionError):
        check_transforms(ball, X, y=project(X))
