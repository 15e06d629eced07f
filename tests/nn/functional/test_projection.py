"""A thousand hard rows against the declared problem, the paper's table cell by cell, and every kind of argument.

DDN[lp-projection]
"""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch.autograd import forward_ad

import tacit
from nn.functional.lp_cases import CURVED, EVERY, EXACT, central_differences, generic_rows, hard_rows, norm
from tacit.errors import InputTypeError, InputValueError, OptionError
from tacit.functions import lp_norm_gradient, lp_norm_hessian
from tacit.nn import LpBall, LpSphere, Simplex
from tacit.nn.functional import lp_ball, lp_sphere, simplex

F64 = torch.float64
KINDS = {"sphere": (lp_sphere, LpSphere), "ball": (lp_ball, LpBall)}
TARGETS = [(kind, p) for kind in KINDS for p in EVERY] + [("simplex", 1.0)]
FEW = [t for t in TARGETS if t[1] in (*EXACT, 1.5)]
"""Seconds each on a busy machine, so that the other norms wait for the slow selection."""
MANY = [t if t in FEW else pytest.param(*t, marks=pytest.mark.slow) for t in TARGETS]


TWO_GRADIENTS = [
    pytest.param(kind, p, plateau, marks=() if (kind, p) in FEW else pytest.mark.slow)
    for kind, p in TARGETS
    for plateau in (("zero", "printed") if kind != "simplex" and p in (1, math.inf) else ("zero",))
]


def pair(kind, p, plateau="zero"):
    """A projection as a function of (x, radius), and what it declares."""
    if kind == "simplex":
        return simplex, Simplex().problem()
    function, layer = KINDS[kind]
    return lambda x, r: function(x, p, r, plateau=plateau), layer(p, plateau=plateau).problem()


def jacobians(function, x, radius):
    """Dy in x (b, n, n) and in the radius (b, n), row by row of y through backward."""
    x, radius = x.clone().requires_grad_(), radius.clone().requires_grad_()
    y = function(x, radius)
    rows = [torch.autograd.grad(y[:, i].sum(), (x, radius), retain_graph=True) for i in range(y.shape[1])]
    return torch.stack([row[0] for row in rows], 1), torch.stack([row[1] for row in rows], 1)


def wave(x):
    return torch.cos(1.0 + torch.arange(x.numel(), dtype=x.dtype)).reshape(x.shape)


# ---- the declared problem -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "p"), MANY)
def test_a_thousand_answers_are_those_of_a_solver(kind, p, n):
    function, problem = pair(kind, p)
    x, radius = hard_rows(n), torch.full((1000,), 1.2, dtype=F64)
    if p == 2:  # from the centre every point of the sphere is an answer, and the norm has no second derivative there
        x, radius = x[x.abs().sum(1) > 0], radius[x.abs().sum(1) > 0]
    y = function(x, radius)
    start = y + 1e-3 * wave(y)
    if 1 < p < 2:
        # Where a coordinate is zero the norm has no second derivative, and no solver gets across:
        # test_lp_curved compares those rows with halving.
        away = y.abs().amin(1) > 1e-3
        x, radius, y, start = x[away], radius[away], y[away], (y * (1 + 1e-3 * wave(y)))[away]
        assert len(x) > 200
    found = tacit.solve(problem, x, radius, start=start, on_failure="raise")
    torch.testing.assert_close(found.y, y, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "p", "plateau"), TWO_GRADIENTS)
def test_a_thousand_gradients_are_those_of_the_declared_problem(kind, p, plateau, n):
    function, problem = pair(kind, p, plateau)
    x, radius = hard_rows(n), torch.full((1000,), 1.2, dtype=F64)
    if 1 < p < 2:
        x = generic_rows(n)  # in the twin 0 to a negative power is not finite
    y = function(x, radius)
    in_x, in_radius = jacobians(function, x, radius)
    declared = tacit.jacobian(problem, x, radius, y=y)
    flags = tacit.regularity(problem, x, radius, y=y).flags
    # A kink of the norm has one gradient in the layer and the same in the twin, which says NONSMOOTH.
    smooth = (flags & ~int(tacit.Flag.NONSMOOTH)) == 0
    assert smooth.sum() > 650
    torch.testing.assert_close(in_x[smooth], declared[0][smooth], rtol=0, atol=1e-8)
    torch.testing.assert_close(in_radius[smooth], declared[1][smooth], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("kind", "p"), TARGETS)
def test_zero_is_the_derivative_of_finite_differences(kind, p):
    function, _ = pair(kind, p)
    x, radius = generic_rows(5, 70), torch.full((70,), 1.2, dtype=F64)
    in_x, in_radius = jacobians(function, x, radius)
    by_x = central_differences(lambda x: function(x, radius), x)
    by_radius = (function(x, radius + 1e-6) - function(x, radius - 1e-6)) / 2e-6
    near = torch.maximum((in_x - by_x).abs().amax((1, 2)), (in_radius - by_radius).abs().amax(1)) < 1e-6
    assert near.sum() >= 69  # a row within 1e-6 of a kink is a matter of chance


# ---- the table of the paper -----------------------------------------------------------------------------------------


def outside(p):
    """Rows outside the unit ball; y, D h(y) as the table has it."""
    x = generic_rows(6, 300)
    x = x[norm(x, p) > 1.01]
    y = lp_sphere(x, p)
    return x, y, lp_norm_gradient(y, p)


def outer(a):
    return a[:, :, None] * a[:, None, :]


@pytest.mark.parametrize("p", EVERY)
def test_table_h_vanishes_at_the_answer(p):
    _, y, _ = outside(p)
    torch.testing.assert_close(norm(y, p) - 1, torch.zeros(len(y), dtype=F64), rtol=0, atol=1e-13)


def test_table_derivatives_of_h():
    _, y, A = outside(2.0)
    torch.testing.assert_close(A, y)
    torch.testing.assert_close(lp_norm_hessian(y, 2.0), torch.eye(6, dtype=F64) - outer(y))
    _, y, A = outside(1.0)
    assert torch.equal(A, y.sign()) and not lp_norm_hessian(y, 1.0).any()
    _, y, A = outside(math.inf)
    largest = y.abs() >= y.abs().amax(1, keepdim=True)
    assert torch.equal(A, largest * y.sign()) and not lp_norm_hessian(y, math.inf).any()
    assert largest.sum(1).max() > 1


def test_table_multipliers():
    x, y, A = outside(2.0)
    lam = 1 - x.norm(dim=1, keepdim=True)
    torch.testing.assert_close(y - x, lam * A)
    x, y, A = outside(1.0)
    each = y.sign() * (y - x)
    lam = each.amin(1, keepdim=True)
    torch.testing.assert_close(each[y != 0], lam.expand_as(y)[y != 0])  # one number, where y_i is not 0
    assert ((y - x).abs() <= -lam + 1e-12).all()  # elsewhere inside the subdifferential
    x, y, A = outside(math.inf)
    alone = A.abs().sum(1) == 1
    lam = (A * (y - x)).sum(1, keepdim=True)
    assert 10 < alone.sum() < len(x)
    torch.testing.assert_close((y - x)[alone], (lam * A)[alone])  # at ties each largest has a number of its own


@pytest.mark.parametrize("plateau", ["printed", "zero"])
@pytest.mark.parametrize("p", EXACT)
def test_table_gradients(p, plateau):
    x, _, A = outside(p)
    found, _ = jacobians(lambda x, r: lp_sphere(x, p, r, plateau=plateau), x, torch.ones(len(x), dtype=F64))
    eye = torch.eye(6, dtype=F64)
    printed = eye - outer(A) / A.square().sum(1)[:, None, None]
    if p == 2:
        wanted = printed / x.norm(dim=1)[:, None, None]
    elif plateau == "printed":
        wanted = printed
    elif p == 1:
        wanted = torch.diag_embed(A.abs()) - outer(A) / A.square().sum(1)[:, None, None]
    else:
        wanted = eye - torch.diag_embed(A.abs())
    torch.testing.assert_close(found, wanted)
    if p != 2 and plateau == "zero":  # "by masking Dy(x) with p p' (L1) or its complement (Linf)"
        kept = A.abs() if p == 1 else 1 - A.abs()
        torch.testing.assert_close(found, outer(kept) * printed)


@pytest.mark.parametrize("plateau", ["printed", "zero"])
@pytest.mark.parametrize("p", EXACT)
def test_outside_a_ball_the_gradient_is_that_of_the_sphere(p, plateau):
    x, _, _ = outside(p)
    one = torch.ones(len(x), dtype=F64)
    ball, sphere = (jacobians(lambda x, r, f=f: f(x, p, r, plateau=plateau), x, one) for f in (lp_ball, lp_sphere))
    torch.testing.assert_close(ball, sphere)


def test_printed_moves_what_zero_holds():
    x = torch.tensor([2.0, 0.75], dtype=F64, requires_grad=True)  # the point of the paper's figures
    for p, y, zero, printed in (
        (1, [1.0, 0.0], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]),
        (math.inf, [1.0, 0.75], [[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]]),
    ):
        assert lp_sphere(x, p).tolist() == y
        for plateau, wanted in (("zero", zero), ("printed", printed)):
            found = torch.autograd.functional.jacobian(lambda x, p=p, pl=plateau: lp_sphere(x, p, plateau=pl), x)
            assert found.tolist() == wanted


# ---- conventions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", EVERY)
def test_inside_a_ball_nothing_changes_and_the_gradient_is_the_identity(p):
    x = generic_rows(5, 50)
    x = (0.9 * x / norm(x, p)[:, None]).requires_grad_()
    radius = torch.ones((), dtype=F64, requires_grad=True)
    y, v = lp_ball(x, p, radius), wave(x.detach())
    assert torch.equal(y, x)
    in_x, in_radius = torch.autograd.grad(y, (x, radius), v)
    assert torch.equal(in_x, v) and in_radius == 0


@pytest.mark.parametrize("p", EVERY)
def test_on_the_boundary_of_a_ball_the_gradient_is_the_identity(p):
    x = torch.tensor([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]], dtype=F64, requires_grad=True)
    y = lp_ball(x, p)
    assert torch.equal(y, x)
    assert torch.equal(torch.autograd.grad(y, x, wave(y))[0], wave(y))


def test_inside_a_cube_exactly_one_largest_coordinate_moves():
    x = torch.tensor([[0.5, -0.5, 0.5], [-0.2, 0.1, 0.2], [0.3, 0.3, 0.3]], dtype=F64)
    y = lp_sphere(x, math.inf)
    assert y.tolist() == [[1.0, -0.5, 0.5], [-1.0, 0.1, 0.2], [1.0, 0.3, 0.3]]


def test_inside_an_octahedron_all_coordinates_move_alike_and_zeros_upwards():
    x = torch.tensor([[0.25, -0.25, 0.0, -0.0]], dtype=F64)
    assert lp_sphere(x, 1).tolist() == [[0.375, -0.375, 0.125, 0.125]]


@pytest.mark.parametrize(
    ("p", "wanted"), [(1.0, 0.25), (1.5, 0.25 ** (2 / 3)), (2.0, 0.5), (3.0, 1.0), (math.inf, 1.0)]
)
def test_from_the_centre_coordinates_are_equal_up_to_two_and_above_the_first_alone_moves(p, wanted):
    y = lp_sphere(torch.zeros(2, 4, dtype=F64), p)
    torch.testing.assert_close(
        y, torch.full_like(y, wanted) if p <= 2 else wanted * torch.eye(1, 4).double().expand(2, 4)
    )


@pytest.mark.parametrize("p", EVERY)
def test_the_centre_has_a_finite_gradient_also_in_the_radius(p):
    x, radius = torch.zeros(2, 4, dtype=F64, requires_grad=True), torch.ones(2, dtype=F64, requires_grad=True)
    y = lp_sphere(x, p, radius)
    in_x, in_radius = torch.autograd.grad(y.sum(), (x, radius))
    assert in_x.isfinite().all()
    torch.testing.assert_close(in_radius, y.detach().sum(1))
    if p == 2:
        assert not in_x.any()


@pytest.mark.parametrize("p", EVERY)
def test_one_number_goes_to_plus_or_minus_the_radius(p):
    x = torch.tensor([[3.0], [0.5], [-0.5], [-7.0], [1.0], [0.0]], dtype=F64, requires_grad=True)
    y = lp_sphere(x, p)
    torch.testing.assert_close(y[:, 0].tolist(), [1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.zeros_like(x))


def test_a_simplex_and_a_sphere_agree_on_positive_rows():
    x = generic_rows(7).abs()
    x = x[x.sum(1) > 1]
    torch.testing.assert_close(simplex(x), lp_sphere(x, 1))


# ---- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, 2, 3, -1, -4])
@pytest.mark.parametrize(
    ("kind", "p"), [("sphere", 1.0), ("ball", 2.0), ("sphere", 3.0), ("ball", math.inf), ("simplex", 1.0)]
)
def test_any_dim_is_the_last_one_moved(kind, p, dim):
    x = generic_rows(6, 20).reshape(4, 5, 2, 3).requires_grad_()
    here = {"sphere": lp_sphere, "ball": lp_ball}.get(kind)
    project = (lambda x, d: simplex(x, 0.7, d)) if here is None else (lambda x, d: here(x, p, 0.7, d))
    y, moved = project(x, dim), project(x.movedim(dim, -1), -1).movedim(-1, dim)
    assert torch.equal(y, moved)
    assert torch.equal(*(torch.autograd.grad(out, x, wave(y))[0] for out in (y, moved)))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_a_radius_may_be_shared_per_channel_or_per_sample_and_its_gradient_is_the_sum_over_what_shares_it(p):
    x = 3 * generic_rows(5, 24).reshape(4, 6, 5)
    per_row = torch.linspace(0.5, 2.0, 24, dtype=F64).reshape(4, 6)
    for radius in (per_row[0, 0], per_row[0], per_row[:, :1], per_row, per_row[..., None], per_row[:1, :, None]):
        leaf = radius.clone().requires_grad_()
        wide = (radius[..., 0] if radius.ndim == 3 else radius).expand(4, 6).clone().requires_grad_()
        y = lp_sphere(x, p, leaf)
        torch.testing.assert_close(norm(y.detach(), p), wide.detach())
        (found,), (each,) = (
            torch.autograd.grad(out, r, wave(x)) for out, r in ((y, leaf), (lp_sphere(x, p, wide), wide))
        )
        each = each[..., None] if radius.ndim == 3 else each
        torch.testing.assert_close(found, each.sum_to_size(radius.shape))


@pytest.mark.parametrize(("kind", "p"), TARGETS)
def test_a_radius_that_none_can_have_makes_its_own_row_nan(kind, p):
    function, _ = pair(kind, p)
    x = (3 * generic_rows(4, 6)).requires_grad_()
    radius = torch.tensor([1.0, 0.0, -1.0, math.nan, math.inf, 2.0], dtype=F64, requires_grad=True)
    y = function(x, radius)
    assert y[1:5].isnan().all()
    torch.testing.assert_close(y[[0, 5]], function(x[[0, 5]], radius[[0, 5]]), rtol=1e-12, atol=1e-12)
    in_x, in_radius = torch.autograd.grad(y, (x, radius), wave(y.detach()))
    assert (
        in_x.isfinite().all()
        and not in_x[1:5].any()
        and not in_radius[1:5].any()
        and in_radius[[0, 5]].isfinite().all()
    )


@pytest.mark.untyped
def test_wrong_arguments_are_refused():
    x = torch.ones(2, 3)
    with pytest.raises(InputTypeError, match=r"x expects a floating dtype; received torch\.int64"):
        lp_sphere(x.long(), 2)
    with pytest.raises(InputValueError, match="at least one number"):
        lp_ball(x[:, :0], 2)
    with pytest.raises(OptionError, match="dim expects values from -2 to 1"):
        simplex(x, dim=2)
    with pytest.raises(InputValueError, match=r"radius expects a number, or a tensor that broadcasts to \(2,\)"):
        lp_ball(x, 2, torch.ones(3))
    with pytest.raises(OptionError, match="plateau expects one of"):
        lp_ball(x, 2, plateau="Zero")
    with pytest.raises(OptionError, match="radius expects a positive, finite number; received inf"):
        lp_ball(x, 2, math.inf)


# ---- numbers that are hard to hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("kind", "p"), TARGETS)
def test_answers_and_gradients_are_finite_at_any_size(kind, p, dtype):
    function, _ = pair(kind, p)
    x = torch.cat([hard_rows(4, 70) * size for size in (1e-310, 1e-300, 1e-40, 1e-7, 1.0, 1e7, 1e37, 1e300)]).to(dtype)
    x = x[x.isfinite().all(1)].requires_grad_()
    for number in (1.0, 0.05):
        radius = torch.tensor(number, dtype=dtype, requires_grad=True)
        y = function(x, radius)
        in_x, in_radius = torch.autograd.grad(y, (x, radius), wave(x.detach()))
        assert y.isfinite().all() and in_x.isfinite().all() and in_radius.isfinite()
        reached = norm(y.detach().double(), p)
        assert (reached <= number * (1 + 64 * torch.finfo(dtype).eps)).all()
        if kind != "ball":
            assert (reached >= number * (1 - 64 * torch.finfo(dtype).eps)).all()


@pytest.mark.parametrize(("kind", "p"), TARGETS)
def test_float32_rows_near_ten_million_are_exact_to_rounding(kind, p):
    function, _ = pair(kind, p)
    x = (generic_rows(5, 200) + 1e7).float()
    radius = torch.tensor(3.0)
    wanted = function(x.double(), radius.double())
    torch.testing.assert_close(function(x, radius), wanted.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("kind", "p"), TARGETS)
def test_half_precision_is_computed_in_float32_and_autocast_changes_nothing(kind, p, dtype):
    function, _ = pair(kind, p)
    x = generic_rows(5, 20).to(dtype).requires_grad_()
    radius = torch.tensor(1.5, dtype=dtype)
    with torch.autocast("cpu", torch.bfloat16):
        y = function(x, radius)
        full = function(x.float(), radius.float())
    assert y.dtype == dtype and full.dtype == torch.float32
    assert torch.equal(full, function(x.float(), radius.float())) and torch.equal(y, full.to(dtype))
    (grad,) = torch.autograd.grad(y.float().sum(), x)
    assert grad.dtype == dtype and grad.isfinite().all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("kind", "p"), TARGETS)
def test_a_row_that_is_not_finite_leaves_others_and_a_shared_radius_alone(kind, p, bad):
    function, _ = pair(kind, p)
    x, radius = 3 * generic_rows(4, 5), torch.tensor(1.1, dtype=F64, requires_grad=True)
    ill = x.clone()
    ill[1, 2], ill[3] = bad, bad
    well = [0, 2, 4]
    answers = []
    for rows in (ill, x[well]):
        leaf = rows.clone().requires_grad_()
        y = function(leaf, radius)
        v = wave(x) if rows is ill else wave(x)[well]
        grad, in_radius = torch.autograd.grad(y, (leaf, radius), v)
        answers.append((y[well], grad[well], in_radius) if rows is ill else (y, grad, in_radius))
    for own, wanted in zip(*answers, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-12, atol=1e-12)


# ---- spelt out, transformed, compiled -------------------------------------------------------------------------------


@pytest.mark.parametrize("plateau", ["zero", "printed"])
@pytest.mark.parametrize(("kind", "p"), [(kind, p) for kind, p in TARGETS if p in EXACT])
def test_plain_operations_give_what_the_single_operation_gives(kind, p, plateau):
    function, _ = pair(kind, p, plateau)
    x = hard_rows(6, 210)
    radius = torch.linspace(0.6, 2.0, 210, dtype=F64)
    single = (function(x, radius), *jacobians(function, x, radius))
    with forward_ad.dual_level():  # forward mode has no use for an operation without a rule for it
        spelt = (function(x, radius), *jacobians(function, x, radius))
    for own, wanted in zip(spelt, single, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "p"), TARGETS)
def test_two_derivatives_in_x_and_radius_are_those_of_finite_differences(kind, p):
    function, _ = pair(kind, p)
    x = torch.tensor([[2.0, 0.75, -1.3], [0.3, -0.11, 0.2], [-0.5, 3.0, 0.9]], dtype=F64, requires_grad=True)
    radius = torch.tensor([1.2, 0.9, 1.7], dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (x, radius), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(function, (x, radius), atol=1e-6)


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize(("kind", "p"), [(k, p) for k, p in TARGETS if p in (*EXACT, *CURVED[1:3])])
def test_compiled_whole_it_gives_the_same_on_hard_rows(kind, p):
    function, _ = pair(kind, p)
    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, dynamic=False)
    radius = torch.linspace(0.6, 2.0, 140, dtype=F64)
    x = hard_rows(6, 140)
    leaf, same = x.clone().requires_grad_(), x.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own, about what it loads
        y, wanted = compiled(leaf, radius), function(same, radius)
    torch.testing.assert_close(y, wanted, rtol=1e-12, atol=1e-12)
    own, other = torch.autograd.grad(y, leaf, wave(x))[0], torch.autograd.grad(wanted, same, wave(x))[0]
    torch.testing.assert_close(own, other, rtol=1e-10, atol=1e-10)
