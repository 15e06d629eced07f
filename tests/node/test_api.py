"""What the five functions take and give back: shapes, batches, shared and non-tensor inputs, dtypes, graphs."""

from __future__ import annotations

import pytest
import torch
from torch.func import jacfwd, jacrev, vmap
from torch.testing import assert_close

import tacit
from node.cases import CASES, ball, gradient, inputs, jacobian
from tacit.shapes import Tensor

LINEAR = tacit.Problem(lambda A, x, u: 0.5 * (u - A @ x).square().sum())  # y = A x
SCALAR = tacit.Problem(lambda x, u: (u - x.sum()).square(), inequality=lambda x, u: (u - 1)[None])  # y = min(sum x, 1)
MATRIX = tacit.Problem(lambda x, u: 0.5 * (u - x[:2, None] * x).square().sum(), equality=lambda x, u: u.sum(1) - x[1:])
POWER = tacit.Problem(lambda x, k, u: 0.5 * (u - x**k).square().sum())  # y = x^k

x = inputs()
A = torch.cos(torch.arange(6.0, dtype=torch.float64)).reshape(2, 3)


def linear(A: Tensor, x: Tensor, **options: object) -> Tensor:
    return tacit.argmin(LINEAR, A, x, start=torch.zeros(4, 2, dtype=x.dtype), **options)


def test_an_unknown_of_shape_scalar_is_solved_and_differentiated():
    inside = x[:, :1] * torch.ones(3, dtype=x.dtype)
    z = inside.clone().requires_grad_()
    y = tacit.argmin(SCALAR, z, start=z[:, 0])
    expected = inside.sum(1).clamp_max(1.0)
    assert y.shape == (4,)
    assert_close(y.detach(), expected, rtol=0, atol=1e-9)
    slope = (inside.sum(1) < 1).to(x.dtype)[:, None].expand(4, 3)
    assert_close(gradient(y, z)[0], slope * torch.cos(torch.arange(4.0, dtype=x.dtype))[:, None], rtol=1e-9, atol=1e-9)
    assert_close(tacit.jacobian(SCALAR, inside, y=expected), slope, rtol=1e-9, atol=1e-9)
    assert tacit.regularity(SCALAR, inside, y=expected).flags.tolist() == [0, 0, 0, 0]
    assert tacit.value(SCALAR, inside, start=expected).shape == (4,)


def test_an_unknown_of_shape_scalar_sees_transforms():
    def of_one(x: Tensor) -> Tensor:
        return tacit.argmin(SCALAR, x[None], start=x[None, 0])[0]

    z = torch.tensor([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], dtype=x.dtype)
    expected = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], dtype=x.dtype)
    assert_close(vmap(jacrev(of_one))(z), expected)
    assert_close(vmap(jacfwd(of_one))(z), expected)


def test_an_unknown_of_any_shape_is_its_flattening():
    start = torch.zeros(4, 2, 3, dtype=x.dtype)
    y = tacit.argmin(MATRIX, x, start=start)
    flat = tacit.Problem(
        lambda x, u: MATRIX.objective(x, u.reshape(2, 3)), equality=lambda x, u: MATRIX.equality(x, u.reshape(2, 3))
    )
    assert y.shape == (4, 2, 3)
    assert_close(y.flatten(1), tacit.argmin(flat, x, start=start.flatten(1)))
    J = tacit.jacobian(MATRIX, x, y=y)
    assert J.shape == (4, 2, 3, 3)
    assert_close(J.flatten(1, 2), tacit.jacobian(flat, x, y=y.flatten(1)))
    z = x.clone().requires_grad_()
    y = tacit.argmin(MATRIX, z, start=start)
    weights = torch.cos(torch.arange(24.0, dtype=x.dtype)).reshape(4, 2, 3)
    assert_close(gradient(y, z)[0], torch.einsum("bijk,bij->bk", J, weights))


def test_every_input_gets_its_own_gradient():
    As, xs = (A + torch.arange(4.0, dtype=A.dtype)[:, None, None]).requires_grad_(), x.clone().requires_grad_()
    g_A, g_x = gradient(linear(As, xs), As, xs)
    e_A, e_x = gradient((As @ xs[..., None])[..., 0], As, xs)
    assert_close(g_A, e_A)
    assert_close(g_x, e_x)


def test_the_gradient_of_a_shared_input_is_the_sum_over_the_batch():
    shared, xs = A.clone().requires_grad_(), x.clone().requires_grad_()
    g_A, g_x = gradient(linear(shared, xs, in_dims=(None, 0)), shared, xs)
    e_A, e_x = gradient(xs @ shared.mT, shared, xs)
    assert_close(g_A, e_A)
    assert_close(g_x, e_x)


@pytest.mark.parametrize("dim", [1, -1, -2, 2])
def test_the_batch_may_be_any_axis_and_gradients_keep_the_layout(dim: int):
    As = A + torch.arange(4.0, dtype=A.dtype)[:, None, None]
    moved = As.movedim(0, dim).clone().requires_grad_()
    y = linear(moved, x.mT, in_dims=(dim, 1))
    assert_close(y.detach(), linear(As, x))
    As.requires_grad_()
    assert_close(gradient(y, moved)[0], gradient(linear(As, x), As)[0].movedim(0, dim))


def test_the_jacobian_is_batched_for_every_input_and_whole_for_a_shared_one():
    y = x @ A.mT
    J_A, J_x = tacit.jacobian(LINEAR, A, x, y=y, in_dims=(None, 0))
    assert_close(J_x, A.expand(4, 2, 3))
    assert_close(J_A, torch.einsum("ij,bk->bijk", torch.eye(2, dtype=x.dtype), x))
    J_A, J_x = tacit.jacobian(LINEAR, A, x.mT, y=y, in_dims=(None, 1))
    assert_close(J_x, A.expand(4, 2, 3))
    assert J_A.shape == (4, 2, 2, 3)


def test_things_that_are_no_tensors_pass_through_and_have_no_derivative():
    J, none = tacit.jacobian(POWER, x, 2, y=x**2, in_dims=(0, None))
    assert none is None
    assert_close(J, torch.diag_embed(2 * x))
    z = x.clone().requires_grad_()
    y = tacit.argmin(POWER, z, 2, start=x, in_dims=(0, None))
    assert_close(gradient(y, z)[0], gradient(z**2, z)[0])
    for config in ({"k": 2}, [2], "2"):
        problem = tacit.Problem(
            lambda x, c, u: 0.5 * (u - x ** int(c["k"] if isinstance(c, dict) else c[0])).square().sum()
        )
        assert_close(tacit.argmin(problem, x, config, start=x, in_dims=(0, None)), x**2)


def test_integer_inputs_are_used_and_have_no_derivative():
    k = torch.tensor([1, 2, 3, 2])
    z = x.clone().requires_grad_()
    y = tacit.argmin(POWER, z, k, start=x)
    assert_close(y.detach(), x ** k[:, None])
    assert_close(gradient(y, z)[0], gradient(z ** k[:, None], z)[0])
    J, none = tacit.jacobian(POWER, x, k, y=x ** k[:, None])
    assert none is None and J.shape == (4, 3, 3)
    mask = torch.tensor([[True, False, True]]).expand(4, 3)
    masked = tacit.Problem(lambda x, m, u: torch.where(m, u - x, u).square().sum())
    assert_close(tacit.argmin(masked, x, mask, start=x), x * mask)


def test_the_jacobian_of_an_input_the_problem_ignores_is_zero():
    problem = tacit.Problem(lambda x, w, u: 0.5 * (u - x).square().sum())
    J_x, J_w = tacit.jacobian(problem, x, x[:, :2], y=x)
    assert_close(J_x, torch.eye(3, dtype=x.dtype).expand(4, 3, 3))
    assert_close(J_w, torch.zeros(4, 3, 2, dtype=x.dtype))
    w = x[:, :2].clone().requires_grad_()
    assert_close(gradient(tacit.argmin(problem, x, w, start=x), w)[0], torch.zeros(4, 2, dtype=x.dtype))


@pytest.mark.parametrize("name", CASES)
def test_an_empty_batch_works_everywhere(name: str):
    case = CASES[name]
    empty = torch.zeros(0, 3, dtype=x.dtype, requires_grad=True)
    y = case.argmin(empty)
    assert y.shape == (0, 3) and y.dtype == x.dtype
    assert gradient(y, empty)[0].shape == (0, 3)
    solution = tacit.solve(case.problem, empty, start=case.start)
    r = len(tacit.regularity(case.problem, case.x, y=case.argmin(case.x)).state[0])
    assert solution.equality.shape[1] + solution.inequality.shape[1] == r
    assert solution.status.shape == solution.residual.shape == solution.iterations.shape == (0,)
    assert tacit.jacobian(case.problem, empty, y=y).shape == (0, 3, 3)
    assert tacit.regularity(case.problem, empty, y=y).flags.shape == (0,)
    assert "0 samples" in str(tacit.regularity(case.problem, empty, y=y)) + str(solution)
    if case.problem.objective is not None:
        v = tacit.value(case.problem, empty, start=case.start)
        assert v.shape == (0,) and gradient(v, empty)[0].shape == (0, 3)


def test_an_empty_batch_sees_transforms_and_solvers():
    empty = torch.zeros(0, 3, dtype=x.dtype)
    case = CASES["mixed"]
    assert jacrev(case.argmin)(empty).shape == jacfwd(case.argmin)(empty).shape == (0, 3, 0, 3)
    assert vmap(case.argmin)(torch.zeros(2, 0, 3, dtype=x.dtype)).shape == (2, 0, 3)
    assert tacit.argmin(ball, empty, solver=lambda x: x).shape == (0, 3)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_one_equals_its_row_of_a_larger_batch(name: str):
    case = CASES[name]
    z, one = case.x.clone().requires_grad_(), case.x[2:3].clone().requires_grad_()
    y, y_one = case.argmin(z), case.argmin(one)
    assert_close(y_one, y[2:3], rtol=0, atol=1e-12)
    assert_close(gradient(y_one, one)[0], gradient(y[2:3], z)[0][2:3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_strides_do_not_matter(name: str):
    case = CASES[name]
    row = case.x[3]
    stretched = torch.zeros(8, 6, dtype=x.dtype)
    stretched[::2, ::2] = case.x
    for strange, plain in ((case.x.mT.contiguous().mT, case.x), (row.expand(4, 3), row.repeat(4, 1)),
                           (stretched[::2, ::2], case.x), (case.x.flip(0).flip(0), case.x)):  # fmt: skip
        a, b = strange.detach().requires_grad_(), plain.clone().requires_grad_()
        y, expected = case.argmin(a), case.argmin(b)
        assert_close(y, expected, rtol=0, atol=1e-12)
        assert_close(gradient(y, a)[0], gradient(expected, b)[0], rtol=0, atol=1e-11)


def test_an_expanded_input_sums_its_gradient():
    row = x[1].clone().requires_grad_()
    y = CASES["free"].argmin(row.expand(4, 3))
    z = x[1].repeat(4, 1).requires_grad_()
    assert_close(gradient(y, row)[0], gradient(CASES["free"].argmin(z), z)[0].sum(0))


def test_only_what_requires_a_gradient_gets_one():
    shared, xs = A.clone(), x.clone().requires_grad_()
    y = linear(shared, xs, in_dims=(None, 0))
    y.sum().backward()
    assert shared.grad is None and xs.grad is not None
    assert not linear(A, x, in_dims=(None, 0)).requires_grad
    shared.requires_grad_()
    y = linear(shared, x, in_dims=(None, 0))
    assert_close(gradient(y, shared)[0], gradient(x @ shared.mT, shared)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_dtype_is_kept_and_exact_to_its_precision(name: str, dtype: torch.dtype):
    case = CASES[name]
    z = case.x.clone().to(dtype).requires_grad_()
    y = case.argmin(z)
    (g,) = gradient(y, z)
    J = tacit.jacobian(case.problem, z, y=y)
    assert y.dtype == g.dtype == J.dtype == dtype
    exact = case.argmin(case.x)
    eps = torch.finfo(dtype).eps
    assert_close(y.detach().double(), exact, rtol=0, atol=100 * eps)
    assert_close(J.detach().double(), jacobian(case, case.x), rtol=0, atol=1000 * eps)
    assert tacit.regularity(case.problem, z, y=y).flags.tolist() == [0, 0, 0, 0]
    if case.problem.objective is not None:
        assert tacit.value(case.problem, z, start=case.start).dtype == dtype


def test_nothing_is_recorded_without_autograd():
    z = x.clone().requires_grad_()
    with torch.no_grad():
        assert not CASES["mixed"].argmin(z).requires_grad
    s = tacit.solve(ball, z, start=z)
    assert not any(t.requires_grad for t in (s.y, s.equality, s.inequality, s.residual))
    assert CASES["mixed"].argmin(z).requires_grad


def test_inference_mode_inside_and_outside():
    expected = CASES["mixed"].argmin(x)
    with torch.inference_mode():
        made_inside = inputs()
        for z in (x, made_inside):
            assert_close(CASES["mixed"].argmin(z), expected)
            J = tacit.jacobian(ball, z, y=tacit.solve(ball, z, start=z).y)
            assert_close(J, tacit.jacobian(ball, x, y=tacit.solve(ball, x, start=x).y))
            assert tacit.regularity(ball, z, y=tacit.solve(ball, z, start=z).y).flags.sum() == 0
            assert tacit.value(ball, z, start=z).shape == (4,)
    assert made_inside.is_inference()
    assert_close(CASES["mixed"].argmin(made_inside), expected)  # a plain call on such a tensor
    w = torch.ones(3, dtype=x.dtype, requires_grad=True)
    scaled = tacit.Problem(lambda x, w, u: 0.5 * (u - w * x).square().sum())
    y = tacit.argmin(scaled, made_inside.clone(), w, start=x, in_dims=(0, None))
    assert_close(gradient(y, w)[0], gradient(w * x, w)[0])


def test_autocast_changes_nothing():
    z = x.float().requires_grad_()
    y = CASES["mixed"].argmin(z)
    (g,) = gradient(y, z)
    with torch.autocast("cpu", torch.bfloat16):
        y_cast = CASES["mixed"].argmin(z)
        (g_cast,) = gradient(y_cast, z)
    assert y_cast.dtype == torch.float32
    assert_close(y_cast, y, rtol=0, atol=1e-6)
    assert_close(g_cast, g, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_regular_batch_gives_no_warning(name: str):
    case = CASES[name]
    z = case.x.clone().requires_grad_()
    case.argmin(z).sum().backward()  # a warning would be an error
    assert z.grad.isfinite().all()
