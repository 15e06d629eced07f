"""DDN[fixed-point] `Dy = (I - F_Y)^-1 F_X`, by the feasibility problem F(x, u) - u = 0."""

from __future__ import annotations

import torch
from torch.func import jacrev

import tacit
from tacit.implicit.fixed_point import equilibrium, fixed_point

from .cases import by_differences, close, flags, rand

W = 0.4 * rand(3, 3, seed=8)
U = rand(3, 2, seed=9)


def cell(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return torch.tanh(W.to(u) @ u + U.to(u) @ x)


def iterate(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(len(x), 3, dtype=x.dtype)
    for _ in range(300):
        y = torch.vmap(cell)(x, y)
    return y


def test_formula_engine_unrolled_iteration_and_finite_differences_agree():
    x = rand(4, 2)
    y = iterate(x)
    F_X, F_Y = torch.vmap(jacrev(cell, (0, 1)))(x, y)
    Dy = fixed_point(F_X, F_Y)
    problem = equilibrium(cell)
    close(tacit.jacobian(problem, x, y=y), Dy)
    close(torch.vmap(jacrev(lambda x: iterate(x[None])[0]))(x), Dy)
    close(by_differences(problem, x, y), Dy, 1e-7)
    assert flags(problem, x, y=y) == [tacit.Flag(0)] * 4


def test_an_equilibrium_layer_trains_its_weights_without_remembering_the_iteration():
    x, weight = rand(4, 2), W.clone().requires_grad_()
    problem = equilibrium(lambda W, x, u: torch.tanh(W @ u + U @ x))
    y = tacit.argmin(problem, weight, x, in_dims=(None, 0), solver=lambda W, x: iterate(x))
    (found,) = torch.autograd.grad(y.square().sum(), weight)
    unrolled = W.clone().requires_grad_()
    z = torch.zeros(4, 3, dtype=torch.float64)
    for _ in range(200):
        z = torch.tanh(z @ unrolled.T + x @ U.T)
    (truth,) = torch.autograd.grad(z.square().sum(), unrolled)
    close(found, truth, 1e-9)


def test_it_needs_no_contraction():
    repelling = equilibrium(lambda x, u: 3 * u - 2 * x)  # the iteration runs away; the fixed point is x
    x = rand(2, 2)
    close(tacit.jacobian(repelling, x, y=x), torch.eye(2).double().expand(2, 2, 2))


def test_a_fixed_point_that_is_not_isolated_is_nan_by_the_formula_and_flagged_by_the_report():
    assert fixed_point(torch.ones(1, 1, 1), torch.ones(1, 1, 1)).isnan().all()
    drifting = equilibrium(lambda x, u: u + 0.0 * x * u)
    x = torch.ones(1, 1, dtype=torch.float64)
    assert flags(drifting, x, y=x)[0] != tacit.Flag(0)
