"""DDN[equality] `Dy = H^-1 A' (A H^-1 A')^-1 (A H^-1 B - C) - H^-1 B`."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit.equality import equality, multiplier_derivative, multipliers

from .cases import at, bowl, by_differences, close, flags, rand

ONE = tacit.Problem(bowl, equality=lambda x, u: (u.square().sum() - 1 - x[0].square())[None])
TWO = tacit.Problem(
    bowl, equality=lambda x, u: torch.stack([u.square().sum() - 4 - x[0].square(), u[0] - x[1] * u[2] + 0.1])
)


@pytest.mark.parametrize("problem", [ONE, TWO], ids=["one row", "two rows"])
def test_formula_engine_and_finite_differences_agree(problem):
    x = 1 + 0.3 * rand(4, 3)
    s = tacit.solve(problem, x, start=x)
    point = at(problem, x, s.y)
    Dy = tacit.jacobian(problem, x, y=s.y)
    close(equality(*point.letters), Dy)
    close(by_differences(problem, x, s.y), Dy, 1e-6)
    close(multipliers(point.letters[1], point.instance.gradient(s.y)), s.equality, 1e-6)
    assert flags(problem, x, y=s.y) == [tacit.Flag(0)] * 4


def test_derivative_of_the_multipliers_is_that_of_the_solver_s():
    x, step = 1 + 0.3 * rand(2, 3), 1e-4
    s = tacit.solve(TWO, x, start=x)
    D_lam = multiplier_derivative(*at(TWO, x, s.y).letters)
    e = step * torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    ahead, behind = (tacit.solve(TWO, x + sign * e, start=s.y).equality for sign in (1, -1))
    close((ahead - behind) / (2 * step), D_lam[..., 1], 1e-5)


def test_an_equality_whose_multiplier_is_zero_stays_active():
    # The free minimum x lies on the line: lam = 0, yet y follows the line.
    line = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), equality=lambda x, u: (u[0] - u[1])[None])
    x = torch.tensor([[2.0, 2.0]], dtype=torch.float64)
    point = at(line, x, x)
    assert float(point.lam.abs()) < 1e-12
    close(equality(*point.letters), torch.full((1, 2, 2), 0.5).double())
    close(tacit.jacobian(line, x, y=x), torch.full((1, 2, 2), 0.5).double())
    assert flags(line, x, y=x) == [tacit.Flag(0)]


def singular_hessians():
    """Problems where H is singular and [[H, A'], [A, 0]] is not: (name, problem, x, y, Dy)."""
    x = torch.tensor([[3.0, 1.0]], dtype=torch.float64)
    # A free unknown that only the row determines: min (u0 - x0)^2 subject to u1 = x1 u0.
    chained = tacit.Problem(lambda x, u: (u[0] - x[0]).square(), equality=lambda x, u: (u[1] - x[1] * u[0])[None])
    yield (
        "a row decides",
        chained,
        x,
        torch.tensor([[3.0, 3.0]], dtype=torch.float64),
        torch.tensor([[[1.0, 0.0], [1.0, 3.0]]]),
    )
    # A linear program at a vertex of equalities.
    vertex = tacit.Problem(
        lambda x, u: u.sum(), equality=lambda x, u: torch.stack([u[0] + u[1] - x[0], u[0] - u[1] - x[1]])
    )
    yield (
        "vertex",
        vertex,
        x,
        torch.tensor([[2.0, 1.0]], dtype=torch.float64),
        torch.tensor([[[0.5, 0.5], [0.5, -0.5]]]),
    )


@pytest.mark.parametrize(("name", "problem", "x", "y", "Dy"), list(singular_hessians()))
def test_where_H_is_singular_and_K_regular_the_formula_fails_and_the_engine_does_not(name, problem, x, y, Dy):
    point = at(problem, x, y)
    assert equality(*point.letters).isnan().all()
    close(tacit.jacobian(problem, x, y=y), Dy.double())
    assert flags(problem, x, y=y) == [tacit.Flag(0)]


def test_second_derivatives_of_the_jacobian_match_finite_differences():
    x = 1 + 0.3 * rand(2, 3)
    y = tacit.solve(ONE, x, start=x).y

    def Dy(x: torch.Tensor) -> torch.Tensor:
        return tacit.jacobian(ONE, x, y=tacit.solve(ONE, x, start=y).y)

    step = 1e-4
    e = step * torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64)
    slope = (8 * (Dy(x + e) - Dy(x - e)) - (Dy(x + 2 * e) - Dy(x - 2 * e))) / 12 / step
    live = x.clone().requires_grad_()
    weight = rand(2, 3, 3, seed=5)
    D = tacit.jacobian(ONE, live, y=tacit.argmin(ONE, live, start=y))
    (by_rule,) = torch.autograd.grad((D * weight).sum(), live)
    close((by_rule * (e / step)).sum(), (slope * weight).sum(), 1e-6)
