"""DDN[vjp] A vector-Jacobian product without B: one solve and one reverse sweep, for any number of inputs."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit.vjp import pull_back, pull_back_rows

from .cases import Counted, at, bowl, close, rand


def pool(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """A robust mean of n vectors, m unknowns."""
    return torch.sqrt(1 + (u - x.reshape(-1, u.shape[0])).square()).sum()


POOL = tacit.Problem(pool)


def backward(n: int, m: int = 5) -> tuple[Counted, torch.Tensor]:
    x = rand(1, n * m).requires_grad_()
    with torch.no_grad():
        start = x.detach().reshape(-1, m).mean(0)[None]
    y = tacit.argmin(POOL, x, start=start)
    with Counted() as count:
        (g,) = torch.autograd.grad(y.sum(), x)
    return count, g


def test_the_backward_pass_never_holds_B():
    n, m = 400, 5
    count, g = backward(n, m)
    B = n * m * m
    # The largest tensor is one Hessian sweep over the values, not the m by (n m) matrix B on top of it.
    assert g.shape == (1, n * m)
    assert count.largest <= B
    few, many = backward(100, m)[0], backward(1600, m)[0]
    assert many.largest <= 16 * few.largest + 1
    assert len(few.names) == len(many.names)  # not an operation more for sixteen times the inputs


def test_products_with_wide_inputs_take_no_more_memory_than_the_function_does():
    # The inputs enter by a sum: whatever is of the size m n would be B itself.
    wide = tacit.Problem(lambda x, u: 0.5 * (u - x.square().mean()).square().sum())
    x = rand(2, 10_000).requires_grad_()
    y = tacit.argmin(wide, x, solver=lambda x: x.square().mean(1, keepdim=True).expand(-1, 30).clone())
    with Counted() as count:
        (g,) = torch.autograd.grad(y.sum(), x)
    assert count.largest < 2 * 30 * 10_000 / 10
    close(g, 30 * 2 * x / 10_000)


@pytest.mark.parametrize("shared", [False, True])
def test_product_and_rows_are_those_of_the_Jacobian(shared):
    W = rand(3, 3, seed=4) if shared else rand(2, 3, 3, seed=4)
    problem = tacit.Problem(
        lambda W, x, u: bowl(W @ x, u), equality=lambda W, x, u: (u.square().sum() - 1 - x[0].square())[None]
    )
    x, dims = 1 + 0.2 * rand(2, 3), (None if shared else 0, 0)
    y = tacit.solve(problem, W, x, start=x, in_dims=dims).y
    D_W, D_x = tacit.jacobian(problem, W, x, y=y, in_dims=dims)
    v = rand(2, 3, seed=6)
    live = (W.clone().requires_grad_(), x.clone().requires_grad_())
    out = tacit.argmin(problem, *live, solver=lambda W, x: y, in_dims=dims)
    g_W, g_x = torch.autograd.grad((v * out).sum(), live)
    close(g_x, torch.einsum("bi,bij->bj", v, D_x))
    by_sample = torch.einsum("bi,bijk->bjk", v, D_W)
    close(g_W, by_sample.sum(0) if shared else by_sample)


def test_pull_back_is_minus_w_times_B_and_C():
    problem = tacit.Problem(bowl, equality=lambda x, u: (u.sum() - x[0] * x[1])[None])
    x = 1 + 0.2 * rand(2, 3)
    point = at(problem, x, tacit.solve(problem, x, start=x).y)
    _, _, B, C = point.letters
    w = rand(2, 4, seed=2)
    (found,) = pull_back(point.instance, point.y, point.lam, w, [0])
    close(found, -torch.einsum("bi,bij->bj", w, torch.cat([B, C], 1)))
    W = rand(2, 4, 5, seed=3)
    (rows,) = pull_back_rows(point.instance, point.y, point.lam, W, [0])
    close(rows, -W.mT @ torch.cat([B, C], 1))


def test_no_positions_no_work():
    problem = tacit.Problem(bowl)
    x = rand(2, 3)
    point = at(problem, x, x)
    assert pull_back(point.instance, x, point.lam, x, []) == ()
    assert pull_back_rows(point.instance, x, point.lam, x[..., None], []) == ()
