"""The exact searches against what can be had by trying everything."""

from __future__ import annotations

import pytest
import torch

from tacit.functions import PENALTIES
from tacit.nn.functional import exact_location
from tacit.shapes import Tensor

INF = torch.inf


def one(*numbers: float) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64)


def alphas(x: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.full_like(x[:, :1], alpha)


def objective(name: str, x: Tensor, u: Tensor, alpha: float, weight: Tensor | None = None) -> Tensor:
    """Of every candidate u (r, k): (r, k)."""
    value = PENALTIES[name].value(u[..., None] - x[:, None], torch.tensor(alpha, dtype=x.dtype))
    return (value if weight is None else value * weight[:, None]).sum(-1)


def rows(r: int, n: int, kind: str, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(r, n, generator=generator, dtype=torch.float64)
    if kind == "outliers":
        far = torch.rand(r, n, generator=generator) < 0.3
        x = torch.where(far, x * 10 ** (3 * torch.rand(r, n, generator=generator, dtype=torch.float64)), x)
    if kind == "ties":
        x = (2 * x).round() / 2
    if kind == "far":
        x = 1e7 * x
    return x


def some_weight(x: Tensor) -> Tensor:
    weight = (1.5 + (7 * x).sin()).clamp_min(0.8) - 0.8
    weight[:, 0] += 0.1
    return weight


def every_window(x: Tensor, weight: Tensor) -> Tensor:
    """The means of all runs of neighbours."""
    order = x.argsort(-1)
    s, w = x.gather(-1, order), weight.gather(-1, order)
    n = x.shape[-1]
    means = []
    for i in range(n):
        for j in range(i + 1, n + 1):
            anchor = s[:, i : i + 1]
            mass = w[:, i:j].sum(-1, keepdim=True)
            moment = (w[:, i:j] * (s[:, i:j] - anchor)).sum(-1, keepdim=True)
            means.append(anchor + torch.where(mass > 0, moment / mass, 0.0))
    return torch.cat(means, -1)


# ---- truncated quadratic --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["normal", "outliers", "ties", "far"])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 3.0])
def test_no_window_is_better_than_the_one_taken(kind, alpha, weighted):
    for n in (1, 2, 3, 9):
        x = rows(100, n, kind)
        weight = some_weight(x) if weighted else torch.ones_like(x)
        y = exact_location.truncated_quadratic(x, alphas(x, alpha), weight if weighted else None)
        lowest = objective("truncated_quadratic", x, every_window(x, weight), alpha, weight).amin(-1, keepdim=True)
        found = objective("truncated_quadratic", x, y, alpha, weight)
        assert (found <= lowest * (1 + 1e-9) + 1e-12).all()


def test_windows_are_scored_by_objective_not_by_count():
    x = one(-0.99, 0, 0.99, 10, 10)
    assert exact_location.truncated_quadratic(x, alphas(x), None).item() == 10.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_rows_of_every_size_and_place_are_answered_together_as_alone(dtype, n, weighted):
    sizes = torch.tensor([1e-6, 9e-3, 1, 5, 30, 70, 1e3, 1e5, 1e12, 1, 1, 1], dtype=torch.float64)
    places = torch.tensor([0] * 9 + [20, 5e3, 1e6], dtype=torch.float64)
    x = (rows(12, n, "normal") * sizes[:, None] + places[:, None]).to(dtype)
    weight = some_weight(x) if weighted else None
    y = exact_location.truncated_quadratic(x, alphas(x), weight)
    for i in range(len(x)):
        these = slice(i, i + 1)
        w = None if weight is None else weight[these]
        assert torch.equal(y[these], exact_location.truncated_quadratic(x[these], alphas(x)[these], w))
        careful = exact_location._careful_windows(
            x[these].double(), alphas(x)[these].double(), None if w is None else w.double()
        )
        torch.testing.assert_close(
            y[these].double(), careful, rtol=torch.finfo(dtype).eps, atol=1e-7 if dtype == torch.float32 else 1e-13
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gap", [2.5, 1e3])
@pytest.mark.parametrize("n", [10, 3000, 100_000])
def test_a_window_behind_many_lone_points_is_scored_as_exactly_as_the_first(n, gap, weighted):
    lone = gap * torch.arange(n, dtype=torch.float64)
    last = n * gap + 10
    x = torch.cat([one(-20, -19.5), lone[None], one(last, last + 0.5 - 1e-6)], -1)
    y = exact_location.truncated_quadratic(x, alphas(x), torch.ones_like(x) if weighted else None)
    torch.testing.assert_close(y, one(last + 0.25 - 5e-7), rtol=1e-15, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gap", [2.5, 1.1e3])
def test_of_equal_windows_the_left_one_is_taken_wherever_they_lie(gap, weighted):
    x = gap * torch.arange(3000, dtype=torch.float64)[None] - 9.7
    y = exact_location.truncated_quadratic(x, alphas(x), torch.ones_like(x) if weighted else None)
    assert y.item() == -9.7


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200])
def test_the_scale_of_the_weights_does_not_matter(scale):
    x, weight = one(0, 0.5, 10, 10, 10.5, 11), scale * one(1, 1, 1, 1, 0, 1)
    y = exact_location.truncated_quadratic(x, alphas(x), weight)
    torch.testing.assert_close(y, one(31 / 3), rtol=1e-14 if scale > 1e-300 else 1e-3, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("alpha", [1e-30, 1e-3, 1.0, 1e30])
def test_alpha_may_be_lost_in_the_rounding_of_the_points_or_the_points_in_that_of_alpha(alpha, dtype):
    x = one(0, 1, 1, 1, 5).to(dtype)
    y = exact_location.truncated_quadratic(x, alphas(x, alpha), None)
    expected = x.mean(-1, keepdim=True) if alpha == 1e30 else (x[:, 1:2] if alpha < 1 else 0.75 * x[:, 1:2])
    torch.testing.assert_close(y, expected, rtol=1e-6, atol=0)


# ---- Huber ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "alpha", "y"),
    [
        ((0, 10), 1.0, 5.0),  # every u in [1, 9]
        ((0, 0, 10, 10), 1.0, 5.0),
        ((0, 4, 10, 100), 1.0, 7.0),  # [5, 9]
        ((0, 2), 1.0, 1.0),  # the interval is a point
        ((0, 1), 1.0, 0.5),
        ((3,), 1.0, 3.0),
        ((0, 10, 20), 1.0, 10.0),
        ((0, 0, 100), 1.0, 0.5),
    ],
    ids=str,
)
def test_an_interval_of_minimisers_is_answered_by_its_midpoint(x, alpha, y):
    x = one(*x)
    torch.testing.assert_close(exact_location.huber(x, alphas(x, alpha), None), one(y), rtol=1e-14, atol=0)
    doubled = exact_location.huber(x, alphas(x, alpha), torch.full_like(x, 2.0))
    torch.testing.assert_close(doubled, one(y), rtol=1e-14, atol=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["normal", "outliers", "ties", "far"])
def test_the_slope_of_a_convex_penalty_changes_sign_at_the_answer(kind, weighted):
    for n in (1, 2, 7, 40):
        x = rows(200, n, kind)
        weight = some_weight(x) if weighted else None
        alpha = alphas(x, 0.7)
        found = {
            "huber": exact_location.huber(x, alpha, weight),
            "pseudo_huber": exact_location.bracketed(x, alpha, weight, x[:, :1], PENALTIES["pseudo_huber"]),
        }
        for name, y in found.items():
            near = 1e-9 * (1 + y.abs())
            below, above = (
                exact_location.total(PENALTIES[name].derivatives(u - x, alpha).slope, weight)
                for u in (y - near, y + near)
            )
            assert (below <= 1e-12 * n).all() and (above >= -1e-12 * n).all()


# ---- Welsch ---------------------------------------------------------------------------------------------------------


def misses(r: int, n: int, alpha: float, seed: int) -> int:
    """How many rows have a point of a dense grid, a fortieth of alpha apart around every number, below the answer."""
    x = rows(r, n, "outliers", seed)
    y = exact_location.welsch(x, alphas(x, alpha), None)
    offsets = torch.arange(-48, 49, dtype=x.dtype) * (alpha / 40)  # the modes lie within alpha of some number
    lowest = torch.full_like(y, INF)
    for i in range(n):
        lowest = torch.minimum(lowest, objective("welsch", x, x[:, i : i + 1] + offsets, alpha).amin(-1, keepdim=True))
    return int((objective("welsch", x, y, alpha) > lowest + 1e-9).sum())


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_welsch_misses_no_mode_of_a_dense_grid(alpha):
    assert misses(200, 8, alpha, 0) == 0


@pytest.mark.slow
def test_welsch_misses_no_mode_of_a_dense_grid_on_ten_thousand_rows():
    assert sum(misses(500, n, alpha, n) for alpha in (0.1, 0.3, 1.0, 2.0) for n in (3, 7, 11, 15, 20)) == 0


def test_a_grouped_row_has_the_mode_of_all_its_points():
    x = torch.cat([rows(8, 300, "normal"), 4 + 0.3 * rows(8, 100, "normal", 1)], -1)
    y = exact_location.welsch(x, alphas(x, 0.3), None)
    lowest = objective("welsch", x, torch.linspace(-3, 6, 601, dtype=x.dtype).expand(8, -1), 0.3).amin(-1, keepdim=True)
    assert (objective("welsch", x, y, 0.3) <= lowest + 1e-9).all()


# ---- all ------------------------------------------------------------------------------------------------------------

SEARCHES = {
    "huber": exact_location.huber,
    "pseudo_huber": lambda x, alpha, weight: exact_location.bracketed(
        x, alpha, weight, x[:, :1], PENALTIES["pseudo_huber"]
    ),
    "truncated_quadratic": exact_location.truncated_quadratic,
    "welsch": exact_location.welsch,
}


@pytest.mark.parametrize("name", SEARCHES)
def test_an_infinite_point_is_an_outlier_and_a_row_without_a_finite_one_is_nan(name):
    x = torch.tensor([[0, 0.1, 0.2, INF], [0, 0.1, -INF, INF], [INF] * 4, [0, 1, 2, torch.nan]], dtype=torch.float64)
    y = SEARCHES[name](x, alphas(x), None)
    assert y[:2].isfinite().all() and (y[:2].abs() < 1).all()
    assert y[2:].isnan().all()


@pytest.mark.parametrize("name", SEARCHES)
def test_the_ends_of_the_range_are_points_like_others(name):
    most = torch.finfo(torch.float32).max
    x = torch.tensor([[-most, most, most], [most, most, most], [0.0, 0.1, most]])
    y = SEARCHES[name](x, alphas(x), None)
    torch.testing.assert_close(y[:2], torch.full_like(y[:2], most), rtol=1e-6, atol=0)
    assert 0 <= y[2] < 2
