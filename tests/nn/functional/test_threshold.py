"""The threshold by counting agrees with halving, with sorting where counting has not ended, and with itself in batches."""

from __future__ import annotations

import math

import pytest
import torch
from torch.func import vmap

from nn.functional.lp_cases import hard_rows, simplex_by_bisection
from tacit.nn.functional import threshold
from tacit.nn.functional.threshold import _sorted_threshold, level, support

F64 = torch.float64


def projected(a, radius):
    below, theta = level(a, radius)
    return (below - theta).clamp_min(0)


@pytest.mark.parametrize("radius", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("n", [1, 2, 5, 300])
def test_the_threshold_is_the_one_found_by_halving(n, radius):
    a = hard_rows(n, 210)
    found = projected(a, torch.full((210, 1), radius, dtype=F64))
    torch.testing.assert_close(found, simplex_by_bisection(a, radius), rtol=0, atol=1e-11 * max(1.0, radius))


def reluctant_row():
    """A row of which each pass drops one number: every next one lies a growing gap below the threshold so far."""
    a, gap = [0.0, 0.0], 1e-13
    while (below := (sum(a) - 1) / len(a) - gap) > -1:
        a.append(below)
        gap *= 1.5 * (len(a) - 1) * (len(a) + 1) / len(a)
    return torch.tensor([a], dtype=F64)


def test_rows_for_which_counting_has_not_ended_are_sorted(monkeypatch):
    asked = []
    real = threshold._sorted_threshold
    monkeypatch.setattr(threshold, "_sorted_threshold", lambda *x: asked.append(x[3].flatten().tolist()) or real(*x))
    a = torch.cat([reluctant_row(), torch.zeros_like(reluctant_row())])
    found = projected(a, torch.ones(2, 1, dtype=F64))
    assert asked == [[True, False]]
    torch.testing.assert_close(found, simplex_by_bisection(a, 1.0), rtol=0, atol=1e-12)


def test_sorting_alone_finds_the_same_and_leaves_sure_rows_as_they_are():
    a = hard_rows(20, 70)
    below, theta = level(a, torch.ones(70, 1, dtype=F64))
    unsure = torch.arange(70)[:, None] % 2 == 0
    found = _sorted_threshold(below, torch.ones(70, 1, dtype=F64), torch.full_like(theta, -7.0), unsure)
    torch.testing.assert_close(found[::2], theta[::2])
    assert (found[1::2] == -7.0).all()


def test_sorting_is_an_operation_that_the_compiler_and_vmap_can_take():
    a = hard_rows(6, 28).reshape(4, 7, 6)
    r = torch.ones(4, 7, 1, dtype=F64)
    mapped = vmap(projected)(a, r)
    torch.testing.assert_close(mapped, projected(a.reshape(28, 6), r.reshape(28, 1)).reshape(4, 7, 6))
    shared = vmap(projected, in_dims=(0, None))(a, r[0])
    torch.testing.assert_close(shared, mapped)
    parts = (a[0], r[0], -r[0], r[0] > 0)
    torch.library.opcheck(torch.ops.tacit.sorted_threshold, parts, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_near_ten_million_keep_the_digits_that_matter(dtype):
    a = (1e7 + torch.arange(5.0).repeat(2, 1)).to(dtype)
    assert projected(a, torch.tensor([[1.0], [3.0]], dtype=dtype)).tolist() == [[0, 0, 0, 0, 1.0], [0, 0, 0, 1.0, 2.0]]


def test_the_largest_number_is_in_even_if_the_radius_is_lost_in_rounding():
    assert support(torch.tensor([[1e30, -1e30]]), torch.full((1, 1), 1e-30)).tolist() == [[True, False]]


def test_what_is_above_the_threshold_supports_the_answer():
    a, r = hard_rows(8, 140), torch.ones(140, 1, dtype=F64)
    assert torch.equal(support(a, r), projected(a, r) > 0)


def test_a_row_with_nan_has_no_support_and_stays_alone():
    a = hard_rows(4, 3)
    wanted = support(a, torch.ones(3, 1, dtype=F64))
    a[1, 2] = math.nan
    found = support(a, torch.ones(3, 1, dtype=F64))
    assert not found[1].any() and torch.equal(found[[0, 2]], wanted[[0, 2]])
