"""DDN[linear-equality] Fixed linear equalities."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.linear_equality import linear_equality
from tacit.implicit.unconstrained import unconstrained

from .cases import at, bowl, by_differences, close, flags, rand

ROWS = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 1.0]], dtype=torch.float64)
PLANE = tacit.Problem(bowl, equality=lambda x, u: ROWS.to(u) @ u - torch.tensor([1.0, 0.5], dtype=u.dtype))


def test_formula_engine_and_finite_differences_agree():
    x = rand(3, 3)
    s = tacit.solve(PLANE, x, start=x)
    H, A, B, C = at(PLANE, x, s.y).letters
    assert not C.any()
    Dy = tacit.jacobian(PLANE, x, y=s.y)
    close(linear_equality(H, A, B), Dy)
    close(by_differences(PLANE, x, s.y), Dy, 1e-7)


def test_it_is_the_unconstrained_derivative_projected_and_not_that_one():
    x = rand(3, 3)
    y = tacit.solve(PLANE, x, start=x).y
    H, A, B, _ = at(PLANE, x, y).letters
    close(A @ linear_equality(H, A, B), torch.zeros(3, 2, 3).double())
    assert float((A @ unconstrained(H, B)).abs().max()) > 0.1


def test_where_H_is_singular_and_K_regular_the_formula_fails_and_the_engine_does_not():
    flat = tacit.Problem(lambda x, u: 0.5 * (u[0] - x[0]).square(), equality=lambda x, u: (u[0] + u[1])[None])
    x = torch.tensor([[2.0]], dtype=torch.float64)
    y = torch.tensor([[2.0, -2.0]], dtype=torch.float64)
    H, A, B, _ = at(flat, x, y).letters
    assert linear_equality(H, A, B).isnan().all()
    close(tacit.jacobian(flat, x, y=y)[0, :, 0], torch.tensor([1.0, -1.0], dtype=torch.float64))
    assert flags(flat, x, y=y) == [tacit.Flag(0)]
