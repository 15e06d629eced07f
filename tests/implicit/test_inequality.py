"""DDN[inequality] Active rows as equalities; three scenarios; one-sided where a multiplier is zero."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit.inequality import Scenario, has_right_signs, inequality, one_sided, scenario
from tacit.implicit.unconstrained import unconstrained

from .cases import at, bowl, by_differences, close, flags, rand

BALL = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: u.square().sum()[None] - 1)
MIXED = tacit.Problem(
    bowl,
    equality=lambda x, u: (u.sum() - x[0])[None],
    inequality=lambda x, u: torch.cat([u.square() - 1 - x[1].square(), -u - 0.4]),
)


def test_formula_engine_and_finite_differences_agree_with_active_sets_that_differ():
    x = rand(6, 3, seed=3)
    s = tacit.solve(MIXED, x, start=torch.zeros_like(x))
    point = at(MIXED, x, s.y)
    assert len(set(map(tuple, point.active.tolist()))) > 2
    assert has_right_signs(point.lam, equalities=1, tolerance=1e-12).all()
    Dy = tacit.jacobian(MIXED, x, y=s.y)
    close(inequality(*point.letters, point.active), Dy)
    close(by_differences(MIXED, x, s.y), Dy, 1e-6)
    assert flags(MIXED, x, y=s.y) == [tacit.Flag(0)] * 6


def test_three_scenarios_of_one_inequality():
    x = torch.tensor([[0.3, 0.4], [3.0, 4.0], [0.6, 0.8]], dtype=torch.float64)
    y = x / x.norm(dim=1, keepdim=True).clamp_min(1)
    point = at(BALL, x, y)
    found = scenario(point.instance.rows(y)[:, 0], point.instance.gradient(y), 1e-9)
    assert found.tolist() == [Scenario.INSIDE, Scenario.HELD, Scenario.TOUCHING]
    eye = torch.eye(2).double()
    # Inside, the derivative of the projection is the identity (the paper's text says zero).
    tangent = eye - y[1:, :, None] * y[1:, None, :]
    expected = torch.stack([eye, tangent[0] / 5, tangent[1]])
    close(tacit.jacobian(BALL, x, y=y), expected)
    assert flags(BALL, x, y=y) == [tacit.Flag(0), tacit.Flag(0), tacit.Flag.WEAKLY_ACTIVE]
    H, _, B, _ = point.letters
    close(unconstrained(H, B)[0], expected[0])


@pytest.mark.parametrize("weak", ["active", "inactive"])
def test_a_weakly_active_row_is_taken_in_or_out_by_policy_and_both_are_one_sided_derivatives(weak):
    x = torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    point = at(BALL, x, x)
    held, free = one_sided(*point.letters, point.active, point.weak)
    policy = tacit.Implicit(weak=weak)
    close(tacit.jacobian(BALL, x, y=x, gradient=policy), held if weak == "active" else free)
    assert flags(BALL, x, y=x, gradient=policy) == [tacit.Flag.WEAKLY_ACTIVE]
    outward, step = torch.tensor([[0.6, 0.8]], dtype=torch.float64), 1e-2
    sign = 1 if weak == "active" else -1
    moved = tacit.solve(BALL, x + sign * step * outward, start=x).y
    side = (held if weak == "active" else free) @ outward[..., None]
    close((moved - x) / step * sign, side[..., 0], 1e-4)


def test_two_weak_rows_are_taken_in_or_out_together():
    corner = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: -u)
    x = torch.zeros(1, 2).double()
    eye = torch.eye(2).double()[None]
    close(tacit.jacobian(corner, x, y=x), 0 * eye)
    close(tacit.jacobian(corner, x, y=x, gradient=tacit.Implicit(weak="inactive")), eye)
    assert flags(corner, x, y=x) == [tacit.Flag.WEAKLY_ACTIVE]


def test_a_strong_and_a_weak_row_side_by_side():
    box = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: u - 1)
    x = torch.tensor([[3.0, 1.0, 0.5]], dtype=torch.float64)
    y = x.clamp_max(1)
    close(tacit.jacobian(box, x, y=y), torch.diag(torch.tensor([0.0, 0.0, 1.0])).double()[None])
    free = tacit.jacobian(box, x, y=y, gradient=tacit.Implicit(weak="inactive"))
    close(free, torch.diag(torch.tensor([0.0, 1.0, 1.0])).double()[None])
    assert flags(box, x, y=y) == [tacit.Flag.WEAKLY_ACTIVE]


def test_a_linear_program_at_a_vertex_has_H_zero_and_a_derivative():
    program = tacit.Problem(
        lambda x, u: -u.sum(), inequality=lambda x, u: torch.stack([u[0] + 2 * u[1] - x[0], 2 * u[0] + u[1] - x[1]])
    )
    x = torch.tensor([[3.0, 3.0]], dtype=torch.float64)
    y = torch.ones(1, 2).double()
    point = at(program, x, y)
    assert inequality(*point.letters, point.active).isnan().all()
    close(
        tacit.jacobian(program, x, y=y),
        torch.linalg.inv(torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64))[None],
    )
    assert flags(program, x, y=y) == [tacit.Flag(0)]


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_active_rows_do_not_depend_on_the_size_of_the_row(size, dtype):
    scaled = tacit.Problem(BALL.objective, inequality=lambda x, u: size * (u.square().sum()[None] - 1))
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=dtype)
    y = x / x.norm(dim=1, keepdim=True).clamp_min(1)
    tolerance = 100 * torch.finfo(dtype).eps
    close(tacit.jacobian(scaled, x, y=y), tacit.jacobian(BALL, x, y=y), tolerance)
    assert flags(scaled, x, y=y) == [tacit.Flag(0)] * 2


def test_signs_of_multipliers_are_those_of_the_statement():
    # Erratum: the proof says non-negative; with L = f - lam' g they are not positive.
    x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    s = tacit.solve(BALL, x, start=x)
    assert float(s.inequality) < 0
    assert has_right_signs(s.inequality, equalities=0).all()
    assert not has_right_signs(-s.inequality, equalities=0).any()
