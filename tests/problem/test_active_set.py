"""Which rows hold, with what multipliers: whatever the units, in both precisions, for exact and for rough answers."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.problem import Instance
from tacit.problem.active_set import RowState, find_active_set

OFF, ON, WEAK, DEPENDENT = (int(s) for s in RowState)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def look(problem, x, y, **options):
    return find_active_set(Instance.bind(problem, (x,), (0,), y), y, **options)


def box(unit: float = 1.0) -> tacit.Problem:
    return tacit.Problem(
        lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: unit * torch.cat([u - 1, -u])
    )


@every_dtype
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_row_is_active_weak_or_inactive_whatever_its_unit(dtype, unit):
    x = torch.tensor([[2.0], [1.0], [0.5], [-0.3]], dtype=dtype)
    found = look(box(unit), x, x.clamp(0, 1))
    assert found.state.tolist() == [[ON, OFF], [WEAK, OFF], [OFF, OFF], [OFF, ON]]
    torch.testing.assert_close(unit * found.lam[0, 0], torch.tensor(-1.0, dtype=dtype))


@pytest.mark.parametrize(("dtype", "push"), [(torch.float32, 1e-3), (torch.float64, 1e-9)])
def test_a_small_push_is_a_push_where_y_is_exact(dtype, push):
    x = torch.tensor([[1.0 + push]], dtype=dtype)
    assert look(box(), x, torch.ones_like(x)).state.tolist() == [[ON, OFF]]


def test_a_small_push_proves_nothing_where_y_is_rough():
    x = torch.tensor([[1 + 1e-9, 0.3]], dtype=torch.float64)
    rough = torch.tensor([[1.0, 0.3 + 3e-8]], dtype=torch.float64)
    assert look(box(), x, rough).state.tolist() == [[WEAK, OFF, OFF, OFF]]


@every_dtype
def test_an_answer_good_to_half_the_digits_has_the_rows_of_the_exact_one(dtype):
    x = torch.tensor([[2.0], [0.5]], dtype=dtype)
    rough = x.clamp(0, 1) - torch.finfo(dtype).eps ** 0.5
    assert look(box(), x, rough).state.tolist() == [[ON, OFF], [OFF, OFF]]


def test_an_equality_without_a_force_stays_active():
    problem = tacit.Problem(lambda x, u: (u - x).square().sum(), equality=lambda x, u: (u - x).sum()[None])
    x = torch.ones(1, 2, dtype=torch.float64)
    found = look(problem, x, x)
    assert found.state.tolist() == [[ON]] and found.lam.tolist() == [[0.0]]


def test_without_an_objective_active_means_by_value():
    problem = tacit.Problem(None, inequality=lambda x, u: torch.stack([u[0] - x[0], u[1] - 5]))
    x = torch.ones(1, 2, dtype=torch.float64)
    assert look(problem, x, x).state.tolist() == [[ON, OFF]]


def test_a_row_stated_twice_is_kept_once():
    problem = tacit.Problem(
        lambda x, u: 0.5 * (u - x).square().sum(),
        inequality=lambda x, u: torch.stack([u[0] - 1, 2 * u[0] - 2, -u[0] - 9]),
    )
    x = torch.tensor([[3.0, 0.0]], dtype=torch.float64)
    found = look(problem, x, torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    assert sorted(found.state[0].tolist()) == [OFF, ON, DEPENDENT]
    assert (found.lam <= 0).all() and found.residual.item() < 1e-12


def test_multipliers_of_dependent_rows_have_the_sign_of_the_paper():
    """Three rows hold a point of the plane; the unconstrained least squares would give one the wrong sign."""
    problem = tacit.Problem(
        lambda x, u: x @ u, inequality=lambda x, u: torch.stack([-u[0], -u[1], -(u[0] - 0.2 * u[1])])
    )
    x = torch.tensor([[1.0, 0.01]], dtype=torch.float64)
    found = look(problem, x, torch.zeros(1, 2, dtype=torch.float64))
    assert (found.lam <= 0).all() and found.residual.item() < 1e-9


def test_the_solvers_own_multipliers_are_kept_where_there_is_a_choice():
    problem = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), equality=lambda x, u: torch.cat([u - 1, u - 1]))
    x = torch.tensor([[3.0]], dtype=torch.float64)
    own = torch.tensor([[-1.5, -0.5]], dtype=torch.float64)
    assert look(problem, x, torch.ones_like(x), given=own).residual.item() < 1e-12


@every_dtype
def test_a_sum_of_squares_in_the_place_of_rows_is_no_row(dtype):
    problem = tacit.Problem(lambda x, u: u.sum(), equality=lambda x, u: (u - x).square().sum()[None])
    x = torch.tensor([[1.0, 2.0]], dtype=dtype)
    assert look(problem, x, x * (1 + torch.finfo(dtype).eps)).state.tolist() == [[DEPENDENT]]


def test_a_row_of_a_float32_that_is_small_in_one_unknown_only_still_counts():
    """The gradient of the second row lives in an unknown that is zero, beside a large curvature in the other."""
    elbow = tacit.Problem(
        None,
        equality=lambda x, u: torch.stack([u[0].cos() + (u[0] + u[1]).cos(), u[0].sin() + (u[0] + u[1]).sin()]) - x,
    )
    x, y = torch.ones(1, 2), torch.tensor([[0.0, torch.pi / 2]])
    assert look(elbow, x, y).state.tolist() == [[ON, ON]]


def test_a_row_is_no_rounding_where_one_unknown_is_ten_digits_smaller_than_the_other():
    circle = tacit.Problem(
        lambda x, u: u[0] * 1e-5 + u[1] * 1e5, equality=lambda x, u: (u[0] / 1e5) ** 2 + (u[1] * 1e5) ** 2 - x
    )
    x = torch.tensor([[1.0]], dtype=torch.float64)
    y = -torch.tensor([[1e5, 1e-5]], dtype=torch.float64) / 2**0.5
    found = look(circle, x, y)
    assert found.state.tolist() == [[RowState.ACTIVE]] and found.residual.item() < 1e-8
    torch.testing.assert_close(found.lam, torch.full((1, 1), -(0.5**0.5), dtype=torch.float64))


def test_where_a_number_is_missing_nothing_is_said_of_a_row():
    x = torch.tensor([[torch.nan], [0.5]], dtype=torch.float64)
    found = look(box(), x, torch.tensor([[1.0], [0.5]], dtype=torch.float64))
    assert (found.state[0] == RowState.INACTIVE).all() and not found.lam[0].any() and not found.finite[0]


def test_a_neighbour_of_nan_changes_nothing():
    x = torch.tensor([[2.0], [torch.nan]], dtype=torch.float64)
    found = look(box(), x, x.clamp(0, 1))
    assert found.state[0].tolist() == [ON, OFF]
    assert found.finite.tolist() == [True, False] and found.residual[1] == torch.inf
