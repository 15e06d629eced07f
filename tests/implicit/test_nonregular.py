"""DDN[nonregular] Dependent rows, more active rows than unknowns, tangent constraints."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.equality import equality
from tacit.implicit.nonregular import is_consistent, overdetermined, pseudo_inverse, reduced

from .cases import at, bowl, close, flags, rand


def test_a_row_written_twice_is_dropped_and_flagged():
    once = tacit.Problem(bowl, equality=lambda x, u: (u.square().sum() - 1 - x[0].square())[None])
    twice = tacit.Problem(
        bowl, equality=lambda x, u: (u.square().sum() - 1 - x[0].square()) * torch.tensor([1.0, -3.0], dtype=u.dtype)
    )
    x = 1 + 0.3 * rand(3, 3)
    y = tacit.solve(once, x, start=x).y
    Dy = tacit.jacobian(once, x, y=y)
    point = at(twice, x, y)
    H, A, B, C = point.letters
    assert equality(H, A, B, C).isnan().any() or float((equality(H, A, B, C) - Dy).abs().max()) > 1e-6
    every = torch.ones(3, 2, dtype=torch.bool)
    found, kept = reduced(H, A, B, C, every)
    assert (kept.sum(1) == 1).all()
    close(found, Dy)
    close(pseudo_inverse(H, A, B, C), Dy)
    close(tacit.jacobian(twice, x, y=y), Dy)
    assert flags(twice, x, y=y) == [tacit.Flag.DEPENDENT] * 3


APEX = tacit.Problem(
    lambda x, u: u[1] + x[2] * u[0],
    inequality=lambda x, u: torch.stack([x[0] + u[0] - x[1] - u[1], x[0] - u[0] + x[1] - u[1], x[0] - u[1]]),
)


def test_three_planes_through_a_point_of_the_plane_determine_it():
    x = torch.tensor([[1.0, 0.5, 0.2], [2.0, -1.0, 0.2]], dtype=torch.float64)
    y = torch.stack([x[:, 1], x[:, 0]], 1)
    _, A, _, C = at(APEX, x, y).letters
    assert is_consistent(A, C).all()
    truth = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64).expand(2, 2, 3)
    close(overdetermined(A, C), truth)
    close(tacit.jacobian(APEX, x, y=y), truth)
    assert flags(APEX, x, y=y) == [tacit.Flag.DEPENDENT] * 2


def test_three_planes_that_part_as_x_moves_are_inconsistent_and_flagged():
    free = tacit.Problem(
        lambda x, u: u[1], inequality=lambda x, u: torch.stack([x[0] + u[0] - u[1], x[1] - u[0] - u[1], x[2] - u[1]])
    )
    x, y = torch.ones(1, 3).double(), torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    _, A, _, C = at(free, x, y).letters
    assert not is_consistent(A, C).any()
    assert flags(free, x, y=y)[0] & tacit.Flag.DEPENDENT
    assert tacit.jacobian(free, x, y=y).isfinite().all()


def test_tangent_balls_share_a_normal_and_the_inner_one_decides():
    # The outer ball touches the inner one from outside at the solution: only the inner one ever holds y.
    nested = tacit.Problem(
        lambda x, u: -x[1] * u[0] + 0.1 * u[1].square(),
        inequality=lambda x, u: torch.stack(
            [u.square().sum() - x[0].square(), (u[0] + 1).square() + u[1].square() - (x[0] + 1).square()]
        ),
    )
    x, y = torch.tensor([[1.0, 2.0]], dtype=torch.float64), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert flags(nested, x, y=y) == [tacit.Flag.DEPENDENT]
    close(tacit.jacobian(nested, x, y=y), torch.tensor([[[1.0, 0.0], [0.0, 0.0]]], dtype=torch.float64))


def test_the_value_of_dependent_multipliers_matters_and_a_sign_feasible_one_is_taken():
    # Two rows with one normal but different curvature: lam moves between them, and with it H.
    tangent = tacit.Problem(
        lambda x, u: -u[0] + x[0] * u[1],
        inequality=lambda x, u: torch.stack([u[0], u[0] + u[1].square()]),
    )
    x, y = torch.zeros(1, 1).double(), torch.zeros(1, 2).double()
    point = at(tangent, x, y)
    assert (point.lam <= 1e-12).all()
    close(point.lam.sum(1), -torch.ones(1).double())
    assert flags(tangent, x, y=y)[0] & tacit.Flag.DEPENDENT


def test_a_dependent_element_leaves_its_neighbours_alone():
    switch = tacit.Problem(bowl, equality=lambda x, u: torch.stack([u.sum() - x[0], u.sum() - x[0] + x[1] * u[0]]))
    x = 1 + 0.1 * rand(3, 3)
    y = tacit.solve(switch, x, start=x).y
    clean = tacit.jacobian(switch, x, y=y)
    x[1, 1] = 0
    y[1] = tacit.solve(tacit.Problem(bowl, equality=lambda x, u: (u.sum() - x[0])[None]), x[1:2], start=x[1:2]).y[0]
    mixed = tacit.jacobian(switch, x, y=y)
    assert float((mixed - clean)[[0, 2]].abs().max()) < 1e-12
    assert flags(switch, x, y=y) == [tacit.Flag(0), tacit.Flag.DEPENDENT, tacit.Flag(0)]
