"""Penalties: the table of the paper, cell by cell, and what a user's own penalty gets for free."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.errors import OptionError, OptionTypeError
from tacit.functions import PENALTIES, Penalty, get_penalty

NAMES = sorted(PENALTIES)
Z = torch.linspace(-4, 4, 41, dtype=torch.float64) + 0.013  # away from the kinks of alpha below


def printed_value(name: str, z: float, a: float) -> float:
    inside = abs(z) <= a
    return {
        "quadratic": 0.5 * z * z,
        "pseudo_huber": a * a * (math.sqrt(1 + (z / a) ** 2) - 1),
        "huber": 0.5 * z * z if inside else a * (abs(z) - 0.5 * a),
        "welsch": 1 - math.exp(-z * z / (2 * a * a)),
        "truncated_quadratic": 0.5 * z * z if inside else 0.5 * a * a,
    }[name]


def printed_curvature(name: str, z: float, a: float) -> float:
    inside = float(abs(z) <= a)
    return {
        "quadratic": 1.0,
        "pseudo_huber": (1 + (z / a) ** 2) ** -1.5,
        "huber": inside,
        "welsch": (a * a - z * z) / a**4 * math.exp(-z * z / (2 * a * a)),
        "truncated_quadratic": inside,
    }[name]


@pytest.mark.parametrize("alpha", [0.7, 1.0, 2.5])
@pytest.mark.parametrize("name", NAMES)
class TestPrintedTable:
    def test_value_is_the_printed_one(self, name: str, alpha: float) -> None:
        want = torch.tensor([printed_value(name, float(z), alpha) for z in Z], dtype=torch.float64)
        got = PENALTIES[name].value(Z, torch.tensor(alpha, dtype=torch.float64))
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)

    def test_curvature_is_the_printed_summand_of_h(self, name: str, alpha: float) -> None:
        want = torch.tensor([printed_curvature(name, float(z), alpha) for z in Z], dtype=torch.float64)
        got = PENALTIES[name].derivatives(Z, torch.tensor(alpha, dtype=torch.float64)).curvature
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)

    def test_written_derivatives_are_those_of_the_value(self, name: str, alpha: float) -> None:
        wide = torch.tensor(alpha, dtype=torch.float64)
        written = PENALTIES[name].derivatives(Z, wide)
        automatic = Penalty.derivatives(PENALTIES[name], Z, wide)
        torch.testing.assert_close(written, automatic, rtol=1e-10, atol=1e-12)

    def test_row_derivatives_are_the_derivatives_times_one_positive_factor(self, name: str, alpha: float) -> None:
        wide = torch.full((1, 1), alpha, dtype=torch.float64)
        plain = PENALTIES[name].derivatives(Z[None], wide)
        scaled = PENALTIES[name].row_derivatives(Z[None], wide)
        factor = scaled.slope[0, -1] / plain.slope[0, -1] if plain.slope[0, -1] != 0 else torch.tensor(1.0)
        assert factor > 0
        for have, want in zip(scaled, plain, strict=True):
            torch.testing.assert_close(have, want * factor, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "quadratic"])
def test_residuals_at_the_end_of_the_range_give_finite_derivatives(name: str, dtype: torch.dtype) -> None:
    z = torch.tensor([-torch.finfo(dtype).max, -1e30, 0.0, 1e30, torch.inf], dtype=dtype)
    for alpha in (1e-6, 1.0, 1e6):
        parts = PENALTIES[name].derivatives(z, torch.tensor(alpha, dtype=dtype))
        assert parts.slope.isfinite().all()
        assert parts.curvature.isfinite().all()


@pytest.mark.parametrize("name", ["huber", "truncated_quadratic"])
def test_a_kink_takes_the_inner_side(name: str) -> None:
    z = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    assert PENALTIES[name].derivatives(z, torch.tensor(1.0, dtype=torch.float64)).curvature.tolist() == [1.0, 1.0]


def test_huber_value_has_its_curvature_at_zero_under_autograd() -> None:
    curvature = torch.func.hessian(lambda z: PENALTIES["huber"].value(z, torch.tensor(1.0)))(torch.tensor(0.0))
    assert curvature.item() == 1.0


def test_welsch_row_derivatives_survive_a_row_far_from_its_location() -> None:
    z = torch.tensor([[60.0, 61.0]])
    assert PENALTIES["welsch"].derivatives(z, torch.ones(1, 1)).curvature.abs().sum() == 0
    assert PENALTIES["welsch"].row_derivatives(z, torch.ones(1, 1)).curvature[0, 0] != 0


def test_a_name_is_looked_up_and_an_object_passed_through() -> None:
    huber = get_penalty("huber")
    assert get_penalty(huber) is huber


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(OptionError, match="Did you mean 'welsch'"):
        get_penalty("welsh")


@pytest.mark.untyped
def test_something_else_is_refused_with_advice() -> None:
    with pytest.raises(OptionTypeError, match="Subclass Penalty"):
        get_penalty(3.0)
