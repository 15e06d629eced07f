"""The regularity report: which assumption fails at which sample, in numbers and in words."""

from __future__ import annotations

import torch

import tacit

from .cases import rand

F = tacit.Flag
relu = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: -u)


def test_a_regular_sample_carries_no_flag_and_its_numbers():
    x = torch.tensor([[2.0, -1.0]], dtype=torch.float64)
    r = tacit.regularity(relu, x, y=x.clamp_min(0))
    assert r.regular.tolist() == [True] and r.rank.tolist() == [1]
    assert r.least_curvature.item() == 1.0 and r.rcond.item() > 0.1 and r.residual.item() == 0
    assert r.lam.tolist() == [[0.0, -1.0]]  # the sign of the paper


def test_every_flag_has_its_sample():
    valley = tacit.Problem(lambda x, u: (u[:1] - x).square().sum() + 0.0 * u.sum())
    x = rand(2, 1)
    y = torch.cat([x, torch.ones_like(x)], 1)
    y[1, 0] = torch.nan
    assert tacit.regularity(valley, x, y=y).flags.tolist() == [F.SINGULAR, F.NONFINITE]
    hill = tacit.Problem(lambda x, u: -(u - x).square().sum())
    assert tacit.regularity(hill, x, y=x).flags.tolist() == [F.NOT_MINIMUM] * 2
    assert tacit.regularity(hill, x, y=x + 1).flags[0] & F.NOT_STATIONARY
    kink = tacit.Problem(lambda x, u: (u - x).abs().sum() + 0.5 * u.square().sum())
    assert tacit.regularity(kink, 0.1 * x, y=0.1 * x).flags[0] & F.NONSMOOTH
    twice = tacit.Problem(lambda x, u: (u - x).square().sum(), equality=lambda x, u: torch.cat([u - 1, 2 * u - 2]))
    assert tacit.regularity(twice, x, y=torch.ones_like(x)).flags.tolist() == [F.DEPENDENT] * 2
    assert tacit.regularity(relu, 0 * x, y=0 * x).flags.tolist() == [F.WEAKLY_ACTIVE] * 2


def test_a_negative_curvature_that_the_rows_forbid_is_none():
    saddle = tacit.Problem(lambda x, u: u[0] ** 2 - u[1] ** 2, equality=lambda x, u: u[1:] - x)
    x = torch.ones(1, 1, dtype=torch.float64)
    r = tacit.regularity(saddle, x, y=torch.tensor([[0.0, 1.0]], dtype=torch.float64))
    assert r.flags.tolist() == [0] and r.least_curvature.item() > 0


def test_rows_that_leave_no_freedom_leave_no_curvature_to_look_at():
    point = tacit.Problem(None, equality=lambda x, u: u - x)
    assert tacit.regularity(point, torch.ones(1, 2), y=torch.ones(1, 2)).least_curvature.item() == torch.inf


def test_it_prints_what_fails_and_where():
    x = torch.tensor([[2.0], [0.0], [1.0]])
    text = str(tacit.regularity(relu, x, y=x))
    assert "2 regular" in text and "WEAKLY_ACTIVE in 1 (samples 1)" in text and "0 equality rows, 1 inequality" in text
    assert "0 samples" in str(tacit.regularity(relu, x[:0], y=x[:0]))
