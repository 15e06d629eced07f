"""Robust pooling as a function: the table of the paper, gradients, weights, scales, precision, transforms."""

from __future__ import annotations

import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacfwd, jacrev, vmap
from torch.testing import assert_close

from tacit.errors import InputTypeError, InputValueError
from tacit.functions import PENALTIES
from tacit.nn.functional import robust_pool
from tacit.shapes import Tensor

NAMES = sorted(PENALTIES)
ROBUST = [name for name in NAMES if name != "quadratic"]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.where(torch.rand(shape, generator=generator) < 0.2, 7 + x, x)


def printed_summand_of_h(name: str, z: float, a: float) -> float:
    """The row of the paper's table for D_YY f; that for D_XY f is its negative, that for Dy its share of the sum."""
    return {
        "quadratic": 1.0,
        "pseudo_huber": (1 + (z / a) ** 2) ** -1.5,
        "huber": float(abs(z) <= a),
        "welsch": (a**2 - z**2) / a**4 * math.exp(-(z**2) / (2 * a**2)),
        "truncated_quadratic": float(abs(z) <= a),
    }[name]


@pytest.mark.parametrize("name", NAMES)
def test_h_b_and_dy_are_those_of_the_papers_table(name):
    """DDN[robust-pooling]."""
    a = torch.tensor(1.3, dtype=torch.float64)
    for x in numbers(20, 9):
        y = robust_pool(x, name, a)
        w = torch.tensor([printed_summand_of_h(name, float(y - xi), 1.3) for xi in x], dtype=x.dtype)

        def f(x, u):
            return PENALTIES[name].value(u - x, a).sum()

        assert_close(torch.func.hessian(f, 1)(x, y), w.sum(), atol=1e-10, rtol=1e-10)
        assert_close(torch.func.jacrev(torch.func.grad(f, 1), 0)(x, y), -w, atol=1e-10, rtol=1e-10)
        assert_close(jacrev(lambda x: robust_pool(x, name, a))(x), w / w.sum(), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", ROBUST)
def test_three_of_ten_agree_and_seven_are_far(name):
    x = torch.tensor([6.0, 6.02, 5.98, 100, -50, 1e4, -3e3, 77, 0, 1e6], dtype=torch.float64)
    y = robust_pool(x, name, 0.1)
    if PENALTIES[name].convex:  # the slope changes sign there; a median-like answer
        slopes = [PENALTIES[name].derivatives(y + d - x, torch.tensor(0.1)).slope.sum() for d in (-1e-6, 1e-6)]
        assert slopes[0] <= 1e-12 and slopes[1] >= -1e-12
    assert abs(y - 6.0) < 0.11


# ---- gradients ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_gradients_in_numbers_scale_and_weights_are_those_of_finite_differences(name):
    x = numbers(2, 6).requires_grad_()
    alpha = torch.tensor([1.7, 2.3], dtype=torch.float64, requires_grad=True)
    weight = (1.2 + numbers(2, 6, seed=1).sin()).requires_grad_()

    def pool(x, a, w):
        return robust_pool(x, name, a, weight=w)

    assert gradcheck(pool, (x, alpha, weight), atol=1e-6)
    assert gradgradcheck(pool, (x, alpha, weight), atol=1e-5)


@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (2, 3), (2, 3, 1)], ids=str)
def test_a_scale_per_channel_or_per_sample_gets_its_gradient(shape):
    x = numbers(2, 3, 8)
    alpha = (1 + torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda a: robust_pool(x, "pseudo_huber", a), (alpha,), atol=1e-6)
    wide = (alpha if alpha.ndim == 3 else alpha[..., None]).expand(2, 3, 1)
    assert robust_pool(x, "huber", alpha)[1, 2] == robust_pool(x[1, 2], "huber", float(wide[1, 2].detach()))


def test_negative_welsch_weights_are_kept():
    x = torch.tensor([0.0, 0.1, -0.1, 2.0], dtype=torch.float64, requires_grad=True)
    robust_pool(x, "welsch").backward()
    assert x.grad[3] < 0
    assert_close(x.grad.sum(), torch.tensor(1.0, dtype=torch.float64))


def test_welsch_weights_do_not_underflow():
    x = torch.tensor([0.0, 200.0], requires_grad=True)
    y = robust_pool(x, "welsch", search="paper")  # from the median 0; its exponentials sum to 1 and exp(-20000)
    (grad,) = torch.autograd.grad(y, x)
    assert_close(grad, torch.tensor([1.0, 0.0]))


def test_zero_curvature_is_answered_by_policy():
    x = torch.tensor([0.0, 10.0], requires_grad=True)
    for singular, wanted in (("zero", [0.0, 0.0]), ("uniform", [0.5, 0.5])):
        (grad,) = torch.autograd.grad(robust_pool(x, "huber", singular=singular), x)
        assert grad.tolist() == wanted


def test_a_point_at_exactly_alpha_counts_as_inside():
    x = torch.tensor([0.0, 0.0, 2.0, -2.0], dtype=torch.float64, requires_grad=True)
    y = robust_pool(x, "huber", 2.0)
    (grad,) = torch.autograd.grad(y, x)
    assert y == 0 and grad.tolist() == [0.25] * 4


# ---- weights, dims --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_two_is_the_number_twice_and_of_zero_a_hole(name):
    x = numbers(20, 6)
    doubled = robust_pool(torch.cat([x, x[:, :2]], -1), name, 0.9)
    holed = torch.cat([x, torch.full((20, 2), torch.nan, dtype=x.dtype)], -1).requires_grad_()
    y = robust_pool(holed, name, 0.9, weight=torch.tensor([2.0, 2, 1, 1, 1, 1, 0, 0]))
    assert_close(y, doubled, atol=1e-10, rtol=1e-10)
    (grad,) = torch.autograd.grad(y.sum(), holed)
    assert grad.isfinite().all() and not grad[:, 6:].any()


@pytest.mark.parametrize("name", NAMES)
def test_a_set_without_weight_is_zero_with_gradient_zero(name):
    x = numbers(2, 4).requires_grad_()
    weight = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.float64)
    y = robust_pool(x, name, weight=weight)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert y[0] == 0 and not grad[0].any() and grad[1].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [0, 1, -1, (0, 2), (1, 2), (0, 1, 2), (-1, 0)])
def test_any_dims_are_pooled_together(name, dim):
    x = numbers(3, 4, 5)
    dims = sorted(d % 3 for d in ((dim,) if isinstance(dim, int) else dim))
    kept = [d for d in range(3) if d not in dims]
    rows = x.permute(*kept, *dims).reshape([x.shape[d] for d in kept] + [-1])
    y = robust_pool(x, name, 0.8, dim)
    assert_close(y, robust_pool(rows, name, 0.8))
    kept_y = robust_pool(x, name, 0.8, dim, keepdim=True)
    assert kept_y.shape == tuple(1 if d in dims else size for d, size in enumerate(x.shape))
    assert torch.equal(kept_y.flatten(), y.flatten())


@pytest.mark.parametrize("name", NAMES)
def test_no_row_gives_no_answer_and_a_row_of_nothing_is_refused(name):
    assert robust_pool(torch.zeros(0, 4), name).shape == (0,)
    with pytest.raises(InputValueError, match="give weight 0"):
        robust_pool(torch.zeros(4, 0), name)


# ---- values that are not numbers, and precision ---------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_wild_rows_leave_answer_and_gradient_of_the_others_alone(name):
    x, ill = numbers(8, 9).requires_grad_(), numbers(8, 9)
    ill[1, 3], ill[3, 0], ill[5], ill[7, 8] = torch.nan, torch.inf, 1e300, -torch.inf
    ill.requires_grad_()
    well = [0, 2, 4, 6]
    y, wild = robust_pool(x, name), robust_pool(ill, name)
    assert torch.equal(wild[well], y[well])
    grads = [torch.autograd.grad(part.sum(), leaf)[0] for part, leaf in ((y, x), (wild, ill))]
    assert torch.equal(grads[1][well], grads[0][well])
    assert wild[1].isnan() and not grads[1][1].any()


@pytest.mark.parametrize("name", NAMES)
def test_float32_at_ten_million_is_as_precise_as_float32(name):
    x = (1e7 + 3 * numbers(30, 50)).float()
    assert_close(robust_pool(x, name).double(), robust_pool(x.double(), name), atol=2.0, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_pooled_in_float32_and_given_back_in_kind(name, dtype):
    x = numbers(4, 50).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype):
        y = robust_pool(x, name)
    assert y.dtype == dtype
    assert torch.equal(y, robust_pool(x.float(), name).to(dtype))
    y.sum().backward()
    assert x.grad.dtype == dtype and x.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_subnormal_numbers_are_pooled(name, dtype):
    unit = torch.finfo(dtype).tiny / 1024
    x = (unit * torch.tensor([1.0, 2.0, 5.0], dtype=dtype)).requires_grad_()
    y = robust_pool(x, name)
    y.backward()
    assert unit <= y <= 5 * unit and x.grad.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_a_scale_that_is_not_positive_makes_its_row_nan(name):
    x = numbers(4, 5).requires_grad_()
    alpha = torch.tensor([1.0, 0.0, -1.0, torch.nan], dtype=torch.float64, requires_grad=True)
    y = robust_pool(x, name, alpha)
    y.nan_to_num(0).sum().backward()
    assert y.isnan().tolist() == [False, True, True, True]
    assert x.grad[0].any() and not x.grad[1:].any() and not alpha.grad[1:].any()


# ---- transforms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_jacobians_forward_and_reverse_and_vmap_agree(name):
    x = numbers(3, 6)
    one = jacrev(lambda x: robust_pool(x, name))
    rows = torch.stack([one(row) for row in x])
    assert_close(vmap(one)(x), rows)
    assert_close(torch.stack([jacfwd(lambda x: robust_pool(x, name))(row) for row in x]), rows)
    over_scales = vmap(lambda a: robust_pool(x, name, a))(torch.tensor([0.5, 2.0], dtype=x.dtype))
    assert_close(over_scales[1], robust_pool(x, name, 2.0))
    assert_close(vmap(jacrev(one))(x), vmap(jacfwd(one))(x), atol=1e-9, rtol=1e-9)


def test_gradients_in_chunks_are_those_at_once(monkeypatch):
    from tacit.nn.functional import pooling

    x = numbers(40, 30).requires_grad_()
    alpha = torch.ones(40, dtype=torch.float64, requires_grad=True)
    whole = torch.autograd.grad(robust_pool(x, "welsch", alpha).sum(), (x, alpha))
    monkeypatch.setattr(pooling, "_CHUNK", 64)
    parts = torch.autograd.grad(robust_pool(x, "welsch", alpha).sum(), (x, alpha))
    assert_close(parts, whole, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # the compiler's own, about what it loads and what it looks at
@pytest.mark.parametrize("name", NAMES)
def test_compiled_whole_it_answers_alike(name):
    torch.compiler.reset()
    compiled = torch.compile(lambda x: robust_pool(x, name), fullgraph=True, dynamic=False)
    x = numbers(16, 40).requires_grad_()
    y, wanted = compiled(x), robust_pool(x, name)
    assert_close(y, wanted, atol=1e-9, rtol=1e-9)
    assert_close(torch.autograd.grad(y.sum(), x), torch.autograd.grad(wanted.sum(), x), atol=1e-8, rtol=1e-8)


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # the compiler's own, about what it loads and what it looks at
@pytest.mark.parametrize("name", ["welsch", "truncated_quadratic"])
def test_it_is_traced_whole(name):
    """The quick twin of the test above: traced, but nothing is generated."""
    torch.compiler.reset()
    traced = torch.compile(lambda x: robust_pool(x, name), fullgraph=True, dynamic=False, backend="eager")
    x = numbers(16, 40)
    assert_close(traced(x), robust_pool(x, name), atol=1e-9, rtol=1e-9)


@pytest.mark.untyped
def test_what_cannot_be_meant_is_refused():
    x = torch.zeros(3, 4)
    with pytest.raises(InputTypeError, match="weight expects a tensor"):
        robust_pool(x, "huber", weight=[1, 1, 1, 1])
    with pytest.raises(InputValueError, match=r"broadcasts to that of x, \(3, 4\)"):
        robust_pool(x, "huber", weight=torch.ones(5))
    with pytest.raises(InputTypeError, match="device"):
        robust_pool(x, "huber", weight=torch.ones(4, device="meta"))
