"""Robust locations of sets of vectors: their minimum, their gradient, holes, and sets that cannot be pooled."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.autograd import gradcheck

from tacit.errors import InputTypeError, InputValueError, OptionError
from tacit.functions import PENALTIES
from tacit.nn.functional import robust_pool, robust_vector_pool
from tacit.shapes import Tensor

NAMES = sorted(PENALTIES)
CONVEX = [name for name in NAMES if PENALTIES[name].convex]


def sets(r: int, n: int, c: int, spread: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(r, n, c, generator=generator, dtype=torch.float64)
    far = torch.rand(r, n, 1, generator=generator) < 0.3
    return spread * torch.where(far, x * 10 ** (2 * torch.rand(r, n, 1, generator=generator, dtype=torch.float64)), x)


def objective(name: str, x: Tensor, u: Tensor, alpha: float) -> Tensor:
    rho = torch.linalg.vector_norm(u[:, :, None] - x[:, None], dim=-1)
    return PENALTIES[name].value(rho, torch.tensor(alpha, dtype=x.dtype)).sum(-1)


@pytest.mark.parametrize("spread", [1.0, 1e6])
@pytest.mark.parametrize("name", CONVEX)
def test_a_convex_penalty_is_stationary_at_the_answer(name, spread):
    for alpha, n, c in ((0.1, 3, 2), (1.0, 9, 3), (0.5, 2, 1)):
        x = sets(20, n, c, spread)
        y = robust_vector_pool(x, name, alpha)
        around = y[:, None] + spread * 1e-3 * torch.randn(
            20, 50, c, dtype=x.dtype, generator=torch.Generator().manual_seed(0)
        )
        lowest = objective(name, x, around, alpha).amin(-1)
        found = objective(name, x, y[:, None], alpha)[:, 0]
        assert (found <= lowest + 1e-12 * found).all()


@pytest.mark.parametrize("name", ["truncated_quadratic", "welsch"])
def test_most_sets_get_the_best_of_all_subset_means_and_none_a_bad_one(name):
    x = sets(60, 6, 2)
    means = [x[:, list(s)].mean(1) for k in range(1, 7) for s in itertools.combinations(range(6), k)]
    lowest = objective(name, x, torch.stack(means, 1), 0.7).amin(-1)
    found = objective(name, x, robust_vector_pool(x, name, 0.7)[:, None], 0.7)[:, 0]
    assert (found <= lowest * (1 + 1e-9)).double().mean() >= 0.95
    assert (found <= 1.05 * lowest).all()


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_one_number_are_numbers(name):
    x = sets(20, 7, 1)
    numbers = robust_pool(x[..., 0], name, 0.8)
    torch.testing.assert_close(robust_vector_pool(x, name, 0.8)[..., 0], numbers, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_in_points_scale_and_weights_are_those_of_finite_differences(name):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 5, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor([1.7, 2.3], dtype=torch.float64, requires_grad=True)
    weight = (0.5 + torch.rand(2, 5, generator=generator, dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda x, a, w: robust_vector_pool(x, name, a, weight=w), (x, alpha, weight), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_scale_alone_may_require_the_gradient(name):
    alpha = torch.tensor(1.0, requires_grad=True)
    robust_vector_pool(sets(2, 5, 2).float(), name, alpha).sum().backward()
    assert alpha.grad is not None and alpha.grad.isfinite()


@pytest.mark.parametrize("name", NAMES)
def test_a_set_that_cannot_be_pooled_leaves_the_others_alone(name):
    x = sets(8, 6, 2)
    alone = robust_vector_pool(x, name)
    ill = x.clone()
    ill[1, 0, 0], ill[3, 2, 1], ill[5] = torch.nan, torch.inf, 1e300
    ill.requires_grad_()
    y = robust_vector_pool(ill, name)
    well = [0, 2, 4, 6, 7]
    torch.testing.assert_close(y[well], alone[well], atol=1e-12, rtol=1e-12)
    assert y[[1, 3]].isnan().all()
    (grad,) = torch.autograd.grad(y[well].sum(), ill)
    assert grad[well].isfinite().all() and not grad[[1, 3, 5]].any()


@pytest.mark.parametrize("name", NAMES)
def test_a_hole_may_hold_anything(name):
    x = sets(4, 6, 2)
    short = robust_vector_pool(x[:, :4], name)
    x[:, 4], x[:, 5] = torch.nan, torch.inf
    x.requires_grad_()
    y = robust_vector_pool(x, name, weight=torch.tensor([1.0, 1, 1, 1, 0, 0]))
    torch.testing.assert_close(y, short, atol=1e-9, rtol=1e-9)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert not grad[:, 4:].any() and grad.isfinite().all()
    assert not robust_vector_pool(x, name, weight=torch.zeros(6)).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_and_the_largest_numbers_give_finite_gradients(name, dtype):
    small, most = torch.finfo(dtype).tiny / 64, torch.finfo(dtype).max
    for points in ([[small, 0], [2 * small, 0]], [[0, 0], [0.1, 0], [0.2, 0], [most / 8, most / 8]], [[1, 2]] * 3):
        x = torch.tensor(points, dtype=dtype, requires_grad=True)
        alpha = torch.ones((), dtype=dtype, requires_grad=True)
        y = robust_vector_pool(x, name, alpha)
        y.sum().backward()
        assert y.isfinite().all() and x.grad.isfinite().all() and alpha.grad.isfinite()
        if name != "quadratic":
            assert y.abs().max() < 5


def test_the_dims_may_be_any_and_the_scale_per_sample():
    x = sets(6, 5, 2).reshape(2, 3, 5, 2)
    alpha = torch.tensor([[0.4, 1.0, 2.0], [0.5, 0.7, 3.0]], dtype=torch.float64)
    y = robust_vector_pool(x.permute(2, 0, 3, 1), "huber", alpha, dim=0, vector_dim=2, keepdim=True)
    assert y.shape == (1, 2, 2, 3)
    for i, j in itertools.product(range(2), range(3)):
        torch.testing.assert_close(y[0, i, :, j], robust_vector_pool(x[i, j], "huber", float(alpha[i, j])))


def test_no_set_gives_no_answer():
    assert robust_vector_pool(torch.zeros(0, 5, 2), "welsch").shape == (0, 2)


@pytest.mark.untyped
def test_what_cannot_be_meant_is_refused():
    x = torch.zeros(3, 4, 2)
    with pytest.raises(InputValueError, match="For a set of numbers use robust_pool"):
        robust_vector_pool(torch.zeros(3), "huber")
    with pytest.raises(OptionError, match="two different dims"):
        robust_vector_pool(x, "huber", dim=-1)
    with pytest.raises(InputValueError, match="at least one vector"):
        robust_vector_pool(torch.zeros(3, 0, 2), "huber")
    with pytest.raises(InputTypeError, match="received list"):
        robust_vector_pool(x, "huber", weight=[1, 1, 1, 1])
    with pytest.raises(InputValueError, match="broadcasts to"):
        robust_vector_pool(x, "huber", weight=torch.ones(5))
