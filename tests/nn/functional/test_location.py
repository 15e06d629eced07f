"""The quick search is right where it is sure, rows are strangers, and the paper's own search can be had."""

from __future__ import annotations

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tacit.functions import PENALTIES, Penalty
from tacit.nn.functional import location
from tacit.nn.functional.location import locate
from tacit.shapes import Tensor

NAMES = sorted(PENALTIES)
HAVE_A_QUICK_SEARCH = ("huber", "pseudo_huber", "welsch")


def rows(r: int, n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(r, n, generator=generator, dtype=torch.float64)
    far = torch.rand(r, n, generator=generator) < torch.linspace(0, 0.6, r)[:, None]
    return torch.where(far, 1 + 8 * torch.rand(r, n, generator=generator, dtype=torch.float64), x)


def alphas(x: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.full_like(x[:, :1], alpha)


def objective(name: str, x: Tensor, u: Tensor, alpha: Tensor) -> Tensor:
    return PENALTIES[name].value(u - x, alpha).sum(-1)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("name", HAVE_A_QUICK_SEARCH)
def test_where_the_quick_search_is_sure_the_exact_one_finds_nothing_else(name, alpha):
    known = 0
    for r, n in ((200, 5), (100, 30), (12, 300)):
        x = rows(r, n, n)
        a = alphas(x, alpha)
        quick, unsure = location._QUICK[name](x, a, None)
        exact = location._exact_rows(x, a, None, quick, name)
        sure = ~unsure[:, 0]
        known += int(sure.sum())
        assert ((quick - exact).abs()[sure] <= 1e-7 * a[sure]).all()
        assert (objective(name, x, quick, a)[sure] <= objective(name, x, exact, a)[sure] + 1e-11 * n).all()
    assert known > 20


@pytest.mark.parametrize("search", ["global", "paper"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("transposed", [False, True])
def test_no_row_sees_another(transposed, name, weighted, search):
    x = rows(60, 37)
    if transposed:  # in memory: the last bit of a sum depends on it
        x = x.mT.contiguous().mT
    weight = (x.sin() + 0.5).clamp_min(0) if weighted else None
    a = torch.linspace(0.2, 2, 60, dtype=x.dtype)[:, None]
    alone = locate(x, a, weight, PENALTIES[name], search)
    ill = x.clone()
    ill[3], ill[7, 2], ill[11, 5], ill[13] = torch.nan, torch.nan, torch.inf, 1e300
    odd = a.clone()
    odd[17], odd[19] = -1.0, torch.inf
    found = locate(ill, odd, weight, PENALTIES[name], search)
    well = torch.ones(60, dtype=torch.bool)
    well[[3, 7, 11, 13, 17, 19]] = False
    assert torch.equal(found[well], alone[well])
    assert found[[17, 19]].isnan().all()
    part = locate(x[20:23], a[20:23], None if weight is None else weight[20:23], PENALTIES[name], search)
    torch.testing.assert_close(part, alone[20:23], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_rows_handled_in_chunks_are_the_rows_handled_at_once(name, monkeypatch):
    x = rows(50, 20)
    whole = locate(x, alphas(x), None, PENALTIES[name], "global")
    monkeypatch.setattr(location, "_CHUNK", 64)
    torch.testing.assert_close(locate(x, alphas(x), None, PENALTIES[name], "global"), whole, rtol=1e-13, atol=1e-13)


class _Made(TorchFunctionMode):
    """Remembers on which devices tensors are made."""

    def __init__(self):
        super().__init__()
        self.devices = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.devices.append(made.device.type)
        return made


def test_scratch_memory_is_kept_on_the_cpu_whatever_the_default_device_is():
    with torch.device("meta"), _Made() as made:
        location._keep_scratch_memory.__wrapped__()
    assert made.devices == ["cpu"]


def test_the_papers_search_ends_in_a_local_minimum_that_may_not_be_the_global_one():
    x = torch.tensor([[-2.0, -1.0, 0.0, 1.0, 2.0, 30.0, 30.0, 30.0]], dtype=torch.float64)
    a = alphas(x, 0.1)
    for name in ("welsch", "truncated_quadratic"):
        best, paper = (locate(x, a, None, PENALTIES[name], search) for search in ("global", "paper"))
        torch.testing.assert_close(best, torch.full_like(best, 30.0))
        assert objective(name, x, paper, a) > objective(name, x, best, a)
        slope = PENALTIES[name].derivatives(paper - x, a).slope.sum()
        assert slope.abs() < 1e-9


@pytest.mark.parametrize("name", ["quadratic", "pseudo_huber", "huber"])
def test_the_papers_search_finds_the_minimum_of_a_convex_penalty(name):
    x = rows(50, 30)
    paper, best = (locate(x, alphas(x), None, PENALTIES[name], search) for search in ("paper", "global"))
    gap = objective(name, x, paper, alphas(x)) - objective(name, x, best, alphas(x))
    assert gap.abs().max() < 1e-8


class _Cauchy(Penalty):
    name = "cauchy"

    def value(self, z: Tensor, alpha: Tensor) -> Tensor:
        return 0.5 * alpha**2 * torch.log1p((z / alpha) ** 2)


class _LogCosh(Penalty):
    name = "log_cosh"
    convex = True

    def value(self, z: Tensor, alpha: Tensor) -> Tensor:
        q = (z / alpha).abs()
        return alpha**2 * (q + torch.log1p(torch.exp(-2 * q)) - 0.6931471805599453)


@pytest.mark.parametrize("penalty", [_Cauchy(), _LogCosh()], ids=lambda penalty: penalty.name)
def test_the_minimum_of_a_users_penalty_is_that_of_a_dense_grid(penalty):
    x = rows(40, 15)
    a = alphas(x, 0.5)
    y = locate(x, a, None, penalty, "global")
    grid = torch.linspace(-4, 10, 401, dtype=x.dtype)
    lowest = torch.stack([penalty.value(u - x, a).sum(-1) for u in grid], -1).amin(-1)
    assert (penalty.value(y - x, a).sum(-1) <= lowest + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_row_without_weight_is_zero_and_one_with_negative_weight_is_nan(name):
    x = rows(3, 5) + 7
    weight = torch.ones_like(x)
    weight[0], weight[1, 2] = 0.0, -0.1
    y = locate(x, alphas(x), weight, PENALTIES[name], "global")
    assert y[0] == 0 and y[1].isnan() and y[2] > 4
