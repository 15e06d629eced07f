"""The letters are the derivatives that the paper names: f_Y, H, A in y and B, C in x, with L = f - lam' [h; g]."""

from __future__ import annotations

import torch
from torch.func import grad, jacrev

import tacit
from tacit.problem import Instance
from tacit.problem.letters import input_letters, letters, stacked_residual

PROBLEM = tacit.Problem(
    lambda x, u: (u * x.exp()).square().sum() + u[0] * u[1] ** 3,
    equality=lambda x, u: (u.square().sum() - x[1])[None],
    inequality=lambda x, u: u[:1] * x[:1] - 1,
)
X = torch.tensor([[0.3, -0.2], [1.0, 0.5]], dtype=torch.float64)
Y = torch.tensor([[0.7, 0.4], [-0.6, 1.1]], dtype=torch.float64)
LAM = torch.tensor([[0.5, -1.0], [2.0, 0.0]], dtype=torch.float64)


def rows(x, u):
    return torch.cat([PROBLEM.equality(x, u), PROBLEM.inequality(x, u)])


def test_every_letter_is_its_definition():
    instance = Instance.bind(PROBLEM, (X,), (0,), Y)
    found, inputs = letters(instance, Y, LAM), input_letters(instance, Y, LAM, 0)
    for i in range(2):

        def lagrangian(x, u, i=i):
            return PROBLEM.objective(x, u) - LAM[i] @ rows(x, u)

        L_Y = grad(lagrangian, argnums=1)
        torch.testing.assert_close(found.L_Y[i], L_Y(X[i], Y[i]))
        torch.testing.assert_close(found.rows[i], rows(X[i], Y[i]))
        torch.testing.assert_close(found.H[i], jacrev(L_Y, argnums=1)(X[i], Y[i]))
        torch.testing.assert_close(found.A[i], jacrev(rows, argnums=1)(X[i], Y[i]))
        torch.testing.assert_close(inputs.B[i], jacrev(L_Y, argnums=0)(X[i], Y[i]))
        torch.testing.assert_close(inputs.C[i], jacrev(rows, argnums=0)(X[i], Y[i]))


def test_the_residual_stacks_stationarity_and_rows():
    instance = Instance.bind(PROBLEM, (X,), (0,), Y)
    found = letters(instance, Y, LAM)
    torch.testing.assert_close(stacked_residual(instance, Y, LAM), torch.cat([found.L_Y, found.rows], 1))
