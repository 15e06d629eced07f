"""Natural sizes: they follow the units of the unknowns, and fall back on the inputs where the unknowns are zero."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.problem import Instance
from tacit.problem.scales import probe_direction, root_eps, unknown_scale

DTYPES = [torch.float32, torch.float64]


def scale(x: torch.Tensor, y: torch.Tensor, *floor: float) -> torch.Tensor:
    problem = tacit.Problem(lambda x, u: (u - x).square().sum())
    return unknown_scale(Instance.bind(problem, (x,), (0,), y), y, *floor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_size_of_an_unknown_is_its_own_and_never_less_than_a_share_of_the_largest(dtype):
    y = torch.tensor([[2.0, -0.5, 0.0]], dtype=dtype)
    found = scale(torch.zeros_like(y), y)[0]
    assert found[:2].tolist() == [2.0, 0.5]
    share = torch.finfo(dtype).eps ** 0.25
    assert found[2].item() == pytest.approx(2 * share, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_sizes_follow_the_units(unit):
    y = torch.tensor([[2.0, -0.5, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(scale(unit * y, unit * y), unit * scale(y, y))


def test_another_floor_may_be_asked_for():
    y = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    assert scale(y, y, 1e-6).tolist() == [[2.0, 2e-6]]


def test_where_everything_is_zero_one_is_taken():
    y = torch.zeros(1, 2)
    assert scale(y, y).min() > 0


def test_half_the_digits():
    assert root_eps(torch.float64) == 2.0**-26


def test_the_probe_has_both_signs_and_the_sizes_asked_for():
    d = probe_direction(torch.tensor([[1.0, 10.0, 1.0, 10.0, 1.0, 1.0]]))
    assert (d > 0).any() and (d < 0).any()
    assert (d[0, 1].abs() > 5) and (d[0, 0].abs() < 2)
