"""DDN[nonsmooth] Kinks: stationary against the subdifferential, flagged, one element of the generalised derivative."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit.nonsmooth import balances_at_kink, has_kink
from tacit.problem import Instance

from .cases import close, flags, rand

MEDIAN = tacit.Problem(lambda x, u: (u - x).abs().sum())
LASSO = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum() + 0.5 * u.abs().sum())
SMOOTH = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum() + torch.sqrt(1e-2 + u.square()).sum())


def instance(problem: tacit.Problem, x: torch.Tensor, y: torch.Tensor) -> Instance:
    return Instance.bind(problem, (x,), (0,), y)


def test_a_median_is_stationary_at_its_kink_and_a_neighbour_is_not():
    x = torch.tensor([[0.0, 1.0, 5.0], [0.0, 1.0, 5.0]], dtype=torch.float64)
    y = torch.tensor([[1.0], [5.0]], dtype=torch.float64)
    nothing = torch.zeros(2, 0, dtype=torch.float64)
    assert balances_at_kink(instance(MEDIAN, x, y), y, nothing, nothing.bool()).tolist() == [True, False]
    found = flags(MEDIAN, x, y=y)
    assert found[0] & tacit.Flag.NONSMOOTH and not found[0] & tacit.Flag.NOT_STATIONARY
    assert found[1] & tacit.Flag.NOT_STATIONARY
    assert tacit.jacobian(MEDIAN, x, y=y).isfinite().all()


def test_a_soft_threshold_is_flagged_at_zero_and_regular_elsewhere():
    x = torch.tensor([[2.0, -3.0], [0.2, -3.0]], dtype=torch.float64)
    y = x.sign() * (x.abs() - 0.5).clamp_min(0)
    close(tacit.jacobian(LASSO, x, y=y)[0], torch.eye(2).double())
    found = flags(LASSO, x, y=y)
    assert found[0] == tacit.Flag(0)
    assert found[1] == tacit.Flag.NONSMOOTH


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_kink_in_the_second_derivative_is_found_where_it_is(dtype):
    huber = tacit.Problem(
        lambda x, u: (
            torch.where((u - x).abs() <= 1, 0.5 * (u - x).square(), (u - x).abs() - 0.5).sum() + 0.5 * u.square().sum()
        )
    )
    x = torch.tensor([[2.0], [1.0], [3.0]], dtype=dtype)  # y = x/2 up to x = 2, then y = 1
    y = torch.tensor([[1.0], [0.5], [1.0]], dtype=dtype)
    assert flags(huber, x, y=y) == [tacit.Flag.NONSMOOTH, tacit.Flag(0), tacit.Flag(0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_a_smooth_problem_has_no_kink_whatever_its_size(dtype, size):
    x = (size * rand(8, 3)).to(dtype)
    scaled = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum() + size * torch.sqrt(size**2 + u.square()).sum())
    y = tacit.solve(scaled, x, start=x).y
    assert not has_kink(instance(scaled, x, y), y, torch.zeros(8, 0, dtype=dtype)).any()


def test_a_bend_of_an_unknown_that_is_small_beside_the_others_is_no_kink():
    def objective(x, u):
        return (u[0] / 1e5 - x[0]).square() + torch.cosh(1e5 * u[1] - x[1]) + 0.1 * u[0] * u[1]

    problem = tacit.Problem(objective)
    x = torch.tensor([[0.7, 1.3]], dtype=torch.float64)
    y = tacit.solve(problem, x, start=torch.tensor([[1e5, 1e-5]], dtype=torch.float64)).y
    assert not has_kink(instance(problem, x, y), y, torch.zeros(1, 0, dtype=torch.float64)).any()


@pytest.mark.parametrize("off", [0.0, 1e-13, 1e-11])
def test_a_kink_is_found_from_a_y_that_is_a_little_off(off):
    x = torch.tensor([[0.2, -3.0]], dtype=torch.float64)
    y = torch.tensor([[off, -2.5]], dtype=torch.float64)
    assert has_kink(instance(LASSO, x, y), y, torch.zeros(1, 0, dtype=torch.float64)).all()


def test_a_corner_of_the_cross_polytope_is_stationary_against_the_subdifferential():
    # Projection onto |u|_1 = 1 with a sparse answer: the gradient of the Lagrangian does not vanish at u_2 = 0.
    cross = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), equality=lambda x, u: (u.abs().sum() - 1)[None])
    x = torch.tensor([[3.0, 0.2]], dtype=torch.float64)
    y = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    found = flags(cross, x, y=y)[0]
    assert found & tacit.Flag.NONSMOOTH and not found & tacit.Flag.NOT_STATIONARY
    assert tacit.jacobian(cross, x, y=y).isfinite().all()


def test_a_kinky_element_leaves_its_neighbours_alone():
    x = torch.tensor([[2.0, -3.0], [0.2, -3.0], [1.5, 1.0]], dtype=torch.float64)
    y = x.sign() * (x.abs() - 0.5).clamp_min(0)
    together = tacit.jacobian(LASSO, x, y=y)
    alone = torch.cat([tacit.jacobian(LASSO, x[i : i + 1], y=y[i : i + 1]) for i in range(3)])
    assert float((together - alone).abs().max()) < 1e-12


def test_an_empty_batch_has_no_kink():
    empty = torch.zeros(0, 2, dtype=torch.float64)
    assert has_kink(instance(SMOOTH, empty, empty), empty, torch.zeros(0, 0, dtype=torch.float64)).shape == (0,)
