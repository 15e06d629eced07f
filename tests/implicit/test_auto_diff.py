"""DDN[auto-diff] Dy from the functions and a solution, nothing else."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.auto_diff import gradient, gradient_with_constraints

from .cases import bowl, close, rand


def sphere(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return (u.square().sum() - 1 - x[0].square())[None]


def test_the_paper_s_function_agrees_with_the_engine():
    x = rand(3, 3)
    y = tacit.solve(tacit.Problem(bowl), x, start=x).y
    by_hand = torch.stack([gradient(bowl, x[i], y[i]) for i in range(3)])
    close(by_hand, tacit.jacobian(tacit.Problem(bowl), x, y=y))
    close(torch.vmap(lambda x, y: gradient(bowl, x, y))(x, y), by_hand)


def test_with_constraints_too():
    problem = tacit.Problem(bowl, equality=sphere)
    x = 1 + 0.2 * rand(3, 3)
    y = tacit.solve(problem, x, start=x).y
    close(
        torch.vmap(lambda x, y: gradient_with_constraints(bowl, sphere, x, y))(x, y),
        tacit.jacobian(problem, x, y=y),
        1e-7,
    )


def test_an_active_inequality_is_one_of_the_rows():
    problem = tacit.Problem(bowl, inequality=lambda x, u: -u + 2)
    x = rand(2, 3)
    y = tacit.solve(problem, x, start=3 + x).y
    found = tacit.jacobian(problem, x, y=y)
    for i in range(2):
        held = (y[i] < 2 + 1e-6).nonzero().flatten()
        assert len(held)
        close(gradient_with_constraints(bowl, lambda x, u, held=held: (2 - u)[held], x[i], y[i]), found[i], 1e-7)
