from __future__ import annotations

import torch

from solvers.cases import SIMPLEX, bind, doubles, onto_simplex
from tacit.problem import Problem, Status
from tacit.solvers import Quadratic


def test_the_matrices_are_read_off_a_declared_problem() -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(20, 6, generator=generator, dtype=torch.float64)
    found = Quadratic().solve(bind(SIMPLEX, x, x), x)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, onto_simplex(x), rtol=1e-12, atol=1e-12)
    assert (found.lam[:, 1:] <= 0).all()


def test_what_is_not_quadratic_is_not_called_solved() -> None:
    problem = Problem(objective=lambda x, u: (u - x).pow(4).sum(), inequality=lambda x, u: u - 1)
    x = doubles((0.5, 2.0))
    assert Quadratic().solve(bind(problem, x, 0 * x), 0 * x).status.item() != Status.CONVERGED
