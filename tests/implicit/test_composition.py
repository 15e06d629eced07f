"""DDN[composition] Nodes of nodes by the chain rule, in both orders."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

import tacit
from tacit.implicit.composition import left_to_right, multiplications, right_to_left
from tacit.implicit.unconstrained import unconstrained

from .cases import at, bowl, close, rand

INNER = tacit.Problem(bowl)
OUTER = tacit.Problem(
    lambda z, u: 0.5 * (u - z[:2].sin()).square().sum() + u[0] * u[1] * z[2] * 0.1 + 0.1 * (u**4).sum(),
)


def solved() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = rand(3, 3)
    z = tacit.solve(INNER, x, start=x).y
    return x, z, tacit.solve(OUTER, z, start=z[:, :2]).y


def test_nested_nodes_have_the_product_of_their_derivatives():
    x, z, y = solved()
    Dz = unconstrained(*at(INNER, x, z).letters[::2])
    Dy = unconstrained(*at(OUTER, z, y).letters[::2])
    weight = rand(3, 2, seed=4)
    live = x.clone().requires_grad_()
    nested = tacit.argmin(OUTER, tacit.argmin(INNER, live, start=z), start=y)
    (found,) = torch.autograd.grad((weight * nested).sum(), live)
    close(found, left_to_right(weight, [Dy, Dz]), 1e-8)
    close(left_to_right(weight, [Dy, Dz]), right_to_left(weight, [Dy, Dz]))


def test_three_jacobians_give_the_same_in_both_orders():
    v, chain = rand(2, 3), [rand(2, 3, 4, seed=1), rand(2, 4, 2, seed=2), rand(2, 2, 7, seed=3)]
    close(left_to_right(v, chain), right_to_left(v, chain))


class Count(torch.overrides.TorchFunctionMode):
    """Counts the scalar multiplications of matrix products, per sample."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in ("matmul", "__matmul__"):
            a, b = args
            self.total += a.shape[-2] * a.shape[-1] * b.shape[-1]
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("sizes", [(5, 7, 11), (3, 4, 2, 7), (2, 50)])
def test_the_cost_of_both_orders_is_what_is_counted(sizes):
    chain = [rand(1, a, b) for a, b in pairwise(sizes)]
    costs = []
    for order in (left_to_right, right_to_left):
        with Count() as count:
            order(rand(1, sizes[0]), chain)
        costs.append(count.total)
    assert tuple(costs) == multiplications(sizes)


def test_left_to_right_is_the_cheaper_one_for_wide_inputs():
    left, right = multiplications((100, 100, 10_000))
    assert right > 90 * left
