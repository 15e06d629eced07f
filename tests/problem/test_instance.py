"""A problem with its data: values and derivatives in u for the whole batch, one sample at a time."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.errors import FunctionError
from tacit.problem import Instance

PROBLEM = tacit.Problem(
    lambda x, w, u: (w * (u - x).square()).sum() + u.pow(4).sum(),
    equality=lambda x, w, u: (u * u).sum()[None] - 1,
    inequality=lambda x, w, u: u.flatten()[:2] - x.flatten()[:2],
)
X = torch.arange(12, dtype=torch.float64).reshape(2, 2, 3) / 7
W = torch.tensor(2.0, dtype=torch.float64)
U = torch.cos(X).reshape(2, 6)
LAM = torch.tensor([[0.5, -1.0, -2.0], [0.1, 0.0, -3.0]], dtype=torch.float64)


def instance() -> Instance:
    return Instance.bind(PROBLEM, (X, W), (0, None), U.reshape(2, 2, 3))


def lagrangian(i: int):
    return lambda u: PROBLEM.objective(X[i], W, u.reshape(2, 3)) - LAM[i] @ rows(i)(u)


def rows(i: int):
    def stacked(u):
        u = u.reshape(2, 3)
        return torch.cat([PROBLEM.equality(X[i], W, u), PROBLEM.inequality(X[i], W, u)])

    return stacked


def test_sizes_are_counted_when_it_is_bound():
    found = instance()
    assert (found.batch, found.m, found.p, found.q, found.r) == (2, 6, 1, 2, 3)


def test_values_and_derivatives_are_those_of_each_sample():
    found = instance()
    for i in range(2):
        torch.testing.assert_close(found.objective(U)[i], PROBLEM.objective(X[i], W, U[i].reshape(2, 3)))
        torch.testing.assert_close(found.rows(U)[i], rows(i)(U[i]))
        A, H = torch.func.jacrev(rows(i))(U[i]), torch.func.hessian(lagrangian(i))(U[i])
        torch.testing.assert_close(found.jacobian(U)[i], A)
        torch.testing.assert_close(found.hessian(U, LAM)[i], H)
        torch.testing.assert_close(found.lagrangian_gradient(U, LAM)[i], torch.func.grad(lagrangian(i))(U[i]))
        w, v = torch.sin(U), LAM + 1
        torch.testing.assert_close(found.hessian_product(U, LAM, w)[i], H @ w[i])
        torch.testing.assert_close(found.hessian_operator(U, LAM)(w)[i], H @ w[i])
        torch.testing.assert_close(found.jacobian_product(U, w)[i], A @ w[i])
        torch.testing.assert_close(found.jacobian_transpose_product(U, v)[i], A.T @ v[i])


def test_the_curvature_of_rows_along_a_direction_is_known_to_half_the_digits():
    d = torch.sin(U)
    curvature = instance().row_curvature(U, d)
    torch.testing.assert_close(curvature[:, 0], 2 * d.square().sum(1), rtol=1e-6, atol=0)
    assert curvature[:, 1:].abs().max() < 1e-6


def test_some_of_the_samples():
    part = instance().take(torch.tensor([False, True]))
    assert part.batch == 1
    torch.testing.assert_close(part.objective(U[1:]), instance().objective(U)[1:])


def test_an_empty_batch_has_shapes():
    found = Instance.bind(PROBLEM, (X[:0], W), (0, None), U[:0].reshape(0, 2, 3))
    assert (found.p, found.q) == (1, 2)
    assert found.hessian(U[:0]).shape == (0, 6, 6) and found.rows(U[:0]).shape == (0, 3)


def test_without_rows_or_objective_the_rest_is_zero():
    free = Instance.bind(tacit.Problem(lambda x, u: u.square().sum()), (X,), (0,), U)
    assert free.rows(U).shape == free.jacobian_product(U, U).shape == (2, 0)
    assert free.jacobian(U).shape == (2, 0, 6)
    held = Instance.bind(tacit.Problem(None, equality=lambda x, u: u), (X,), (0,), U)
    assert not held.has_objective and held.gradient(U).abs().max() == 0 and held.hessian(U).abs().max() == 0


def test_the_size_of_the_inputs_is_that_of_each_sample():
    torch.testing.assert_close(instance().input_size(U), torch.tensor([2.0, 2.0], dtype=torch.float64))


@pytest.mark.parametrize("role", ["objective", "equality"])
def test_a_function_that_ignores_u_is_refused_when_it_is_bound(role):
    functions = {"objective": lambda x, u: u.sum(), role: (lambda x, u: x.sum() if role == "objective" else x[0])}
    with pytest.raises(FunctionError, match=f"^{role} expects to depend on u"):
        Instance.bind(tacit.Problem(**functions), (X,), (0,), U)
