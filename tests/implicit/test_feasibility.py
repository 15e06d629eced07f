"""DDN[feasibility] A Dy = -C."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.feasibility import feasibility

from .cases import at, by_differences, close, flags, rand


def circles(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Two circles of radius x0, x1 about (0, 0) and (x2, 0)."""
    return torch.stack([u.square().sum() - x[0].square(), (u[0] - x[2]).square() + u[1].square() - x[1].square()])


MEET = tacit.Problem(objective=None, equality=circles)
X = torch.tensor([[3.0, 4.0, 5.0], [3.0, 4.0, 4.5]], dtype=torch.float64)


def meeting(x: torch.Tensor) -> torch.Tensor:
    a = (x[:, 0] ** 2 - x[:, 1] ** 2 + x[:, 2] ** 2) / (2 * x[:, 2])
    return torch.stack([a, (x[:, 0] ** 2 - a**2).sqrt()], 1)


def test_formula_engine_and_finite_differences_agree():
    y = meeting(X)
    _, A, _, C = at(MEET, X, y).letters
    Dy = tacit.jacobian(MEET, X, y=y)
    close(feasibility(A, C), Dy)
    close(by_differences(MEET, X, y), Dy, 1e-6)
    assert flags(MEET, X, y=y) == [tacit.Flag(0)] * 2


def test_multipliers_vanish_and_active_inequalities_stay_active():
    wedge = tacit.Problem(
        None, inequality=lambda x, u: torch.stack([u[0] + x[2] * u[1] - x[0], u[1] - u[0] - x[1], u[0] - 100])
    )
    x = torch.tensor([[3.0, 0.0, 2.0]], dtype=torch.float64)
    y = torch.ones(1, 2).double()
    point = at(wedge, x, y)
    assert point.active.tolist() == [[True, True, False]] and not point.weak.any() and not point.lam.any()
    _, A, _, C = point.letters
    close(feasibility(A[:, :2], C[:, :2]), tacit.jacobian(wedge, x, y=y))
    assert flags(wedge, x, y=y) == [tacit.Flag(0)]


def test_fewer_rows_than_unknowns_give_the_least_norm_and_a_flag():
    plane = tacit.Problem(None, equality=lambda x, u: (u @ torch.tensor([1.0, 2.0, 2.0]).to(u) - x[0])[None])
    x, y = torch.tensor([[9.0]], dtype=torch.float64), torch.tensor([[1.0, 2.0, 2.0]], dtype=torch.float64)
    _, A, _, C = at(plane, x, y).letters
    close(feasibility(A, C), torch.tensor([[[1.0], [2.0], [2.0]]], dtype=torch.float64) / 9)
    close(tacit.jacobian(plane, x, y=y), feasibility(A, C))
    assert flags(plane, x, y=y) == [tacit.Flag.SINGULAR]


def test_more_rows_than_unknowns_that_agree_determine_y():
    three = tacit.Problem(None, equality=lambda x, u: torch.cat([circles(x, u), (u[1] - x[3])[None]]))
    x = torch.cat([X[:1], meeting(X)[:1, 1:]], 1)
    y = meeting(X)[:1]
    _, A, _, C = at(three, x, y).letters
    assert A.shape == (1, 3, 2)
    # The rows agree at x but do not stay consistent as x moves: all that can be asked is a finite answer and a flag.
    assert feasibility(A, C).isfinite().all()
    assert tacit.jacobian(three, x, y=y).isfinite().all()
    assert flags(three, x, y=y)[0] & tacit.Flag.DEPENDENT


def test_a_point_off_the_constraint_is_flagged():
    y = meeting(X) + 1e-2
    assert all(f & tacit.Flag.NOT_STATIONARY for f in flags(MEET, X, y=y))


def test_a_singular_element_leaves_its_neighbours_alone():
    A, C = rand(3, 2, 2), rand(3, 2, 1, seed=1)
    clean = feasibility(A, C)
    A[1] = 0
    assert torch.equal(feasibility(A, C)[[0, 2]], clean[[0, 2]])
