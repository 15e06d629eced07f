"""DDN[imperative] Any layer as a declared node; DDN[relu] the rectified linear unit."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.imperative import declared, rectified_linear_unit

from .cases import close, flags, rand


def layer(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[0].sin() * x[1], x[0] + x[1].square(), x[0] * x[1]])


def test_a_declared_layer_has_the_layer_s_value_and_derivative():
    x = rand(4, 2).requires_grad_()
    y = tacit.argmin(declared(layer), x, start=torch.zeros(4, 3).double())
    truth = torch.vmap(layer)(x)
    close(y, truth, 1e-9)
    close(
        tacit.jacobian(declared(layer), x.detach(), y=truth.detach()), torch.vmap(torch.func.jacrev(layer))(x.detach())
    )
    (declared_grad,) = torch.autograd.grad(y.cos().sum(), x)
    (layer_grad,) = torch.autograd.grad(truth.cos().sum(), x)
    close(declared_grad, layer_grad, 1e-8)


def test_a_declared_linear_layer_has_gradients_in_its_weights():
    x, W = rand(4, 3), rand(2, 3, seed=1).requires_grad_()
    problem = declared(lambda W, x: torch.tanh(W @ x))
    y = tacit.argmin(problem, W, x, start=torch.zeros(4, 2).double(), in_dims=(None, 0))
    (found,) = torch.autograd.grad(y.square().sum(), W)
    (truth,) = torch.autograd.grad(torch.tanh(x @ W.T).square().sum(), W)
    close(found, truth, 1e-8)


def test_declared_relu_is_relu():
    x = torch.tensor([[0.7, -1.2, 2.0], [-0.1, 0.3, -5.0]], dtype=torch.float64, requires_grad=True)
    y = tacit.argmin(rectified_linear_unit(), x, start=x.detach())
    close(y, x.relu(), 1e-8)
    weight = rand(2, 3)
    (found,) = torch.autograd.grad((weight * y).sum(), x)
    (truth,) = torch.autograd.grad((weight * x.relu()).sum(), x)
    close(found, truth, 1e-7)


def test_relu_at_zero_is_weakly_active_with_derivative_zero_or_one_by_policy():
    x = torch.zeros(1, 2, dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)[None]
    close(tacit.jacobian(rectified_linear_unit(), x, y=x), 0 * eye)
    close(tacit.jacobian(rectified_linear_unit(), x, y=x, gradient=tacit.Implicit(weak="inactive")), eye)
    assert flags(rectified_linear_unit(), x, y=x) == [tacit.Flag.WEAKLY_ACTIVE]


def test_relu_in_a_matrix_shape():
    x = rand(2, 3, 2)
    y = tacit.solve(rectified_linear_unit(), x, start=x).y
    close(y, x.relu(), 1e-7)
