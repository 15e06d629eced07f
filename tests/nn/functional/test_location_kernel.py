"""The accelerator's search agrees with the exact one; `kernels.py` says where these tests run."""

from __future__ import annotations

import pytest
import torch

from nn.functional.kernels import DEVICE, INTERPRETED, MARKS
from tacit.functions.penalties import get_penalty
from tacit.nn.functional import exact_location, location_kernel

pytestmark = MARKS
EXACT = {
    "huber": exact_location.huber,
    "truncated_quadratic": exact_location.truncated_quadratic,
    "welsch": exact_location.welsch,
    "pseudo_huber": lambda x, alpha, weight: exact_location.bracketed(
        x, alpha, weight, x[:, :1], get_penalty("pseudo_huber")
    ),
}


def rows(r: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(r, n, generator=generator, dtype=dtype)
    far = torch.rand(r, n, generator=generator) < 0.3
    x = torch.where(far, 10 * torch.randn(r, n, generator=generator, dtype=dtype), x)
    x[::5] = x[::5].round()  # ties, and whole intervals of minimisers
    return x.to(DEVICE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 37, 300])
@pytest.mark.parametrize("penalty", location_kernel.PENALTIES)
def test_the_objective_is_as_low_as_the_exact_search_finds_it(penalty, n, dtype, weighted):
    x = rows(8 if INTERPRETED else 512, n, dtype)
    alpha = torch.linspace(0.2, 1.5, x.shape[0], dtype=dtype, device=DEVICE)[:, None]
    weight = (x.cos() + 0.5).clamp_min(0.0) if weighted else None
    if weight is not None:
        weight[:, 0] += 0.1
    y = location_kernel.locate_rows(x, alpha, weight, x[:, :1], penalty)
    expected = EXACT[penalty](x, alpha, weight)
    mass = 1.0 if weight is None else weight
    lowest, found = (
        (mass * get_penalty(penalty).value(u.double() - x.double(), alpha.double())).sum(-1) for u in (expected, y)
    )
    eps = torch.finfo(dtype).eps
    assert (found <= lowest + 8 * eps * n).all()
    if penalty == "truncated_quadratic":
        torch.testing.assert_close(found, lowest, atol=8 * eps * n, rtol=0)
    if penalty == "huber":  # the midpoint of an interval of minimisers: unique, so the answers themselves agree
        torch.testing.assert_close(y, expected, atol=256 * eps, rtol=256 * eps)


@pytest.mark.parametrize("penalty", location_kernel.PENALTIES)
def test_a_row_with_nan_is_nan_alone_and_infinity_is_an_outlier(penalty):
    x = rows(4, 20, torch.float64)
    x[1, 3] = torch.nan
    x[2, 5] = torch.inf
    one = torch.ones_like(x[:, :1])
    y = location_kernel.locate_rows(x, one, None, x[:, :1], penalty)
    assert y.isnan().flatten().tolist() == [False, True, False, False]
    clean = location_kernel.locate_rows(x[3:], one[3:], None, x[3:, :1], penalty)
    assert torch.equal(y[3:], clean)
