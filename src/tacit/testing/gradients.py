"""Checks the gradient of a declared problem against finite differences and against itself, at a y from anywhere.

>>> import torch, tacit
>>> problem = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum() + 0.1 * u.pow(4).sum())
>>> x = torch.tensor([[0.5, -1.0]], dtype=torch.float64)
>>> tacit.testing.check_gradients(problem, x, y=tacit.solve(problem, x, start=x).y)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacfwd, jacrev, vmap

from tacit.errors import InputTypeError
from tacit.implicit import kept_rows, kkt_matrix, kkt_residual
from tacit.implicit.policy import GradientPolicy, Implicit
from tacit.node import argmin, jacobian
from tacit.node.binding import bind
from tacit.problem import Instance, describe, flatten_samples, is_differentiable, read_inputs
from tacit.problem.active_set import find_active_set
from tacit.problem.letters import letters
from tacit.shapes import Tensor

__all__ = ["check_gradients", "check_transforms", "follow"]


def follow(problem: Any, *xs: Any, y: Tensor, in_dims: Any = 0, steps: int = 6) -> Callable[..., Tensor]:
    """Return a solver that knows y at these inputs and finds it at others close by.

    It takes Newton steps on the optimality conditions of the rows that are active at `y`: no search, no decisions, so its
    answer is smooth in the inputs. Made for finite differences at a regular y.

    Args:
        problem: a `Problem` or a `Node`.
        xs: the inputs at which `y (b, *u)` is the solution.
        steps: how many Newton steps to take; the inputs may change by little.

    Returns:
        `solver(*xs) -> y`, to be given to `argmin`.
    """
    instance, solution, policy = _plain(problem, xs, y, in_dims)
    found = find_active_set(instance, solution)
    keep = kept_rows(found.state, policy)
    extras = len(instance.values) - len(xs)

    @torch.no_grad()
    def solver(*values: Any) -> Tensor:
        moved = instance.with_values((*instance.values[:extras], *values))
        u, lam = solution, found.lam
        for _ in range(steps):
            at = letters(moved, u, lam)
            R = kkt_residual(torch.cat([at.L_Y, at.rows], dim=1), keep)
            step = torch.linalg.solve_ex(kkt_matrix(at.H, at.A, keep), R[..., None])[0][..., 0]
            u, lam = u - step[:, : instance.m], lam + torch.where(keep, step[:, instance.m :], 0.0)
        return u.reshape(y.shape)

    return solver


def _plain(problem: Any, xs: tuple[Any, ...], y: Tensor, in_dims: Any) -> tuple[Instance, Tensor, Implicit]:
    plain = tuple(x.detach() if isinstance(x, Tensor) else x for x in xs)
    bound = bind(problem, plain, in_dims)
    values = tuple(v.detach() if isinstance(v, Tensor) else v for v in bound.values)
    instance = Instance.bind(bound.problem, values, bound.in_dims, y.detach())
    return instance, flatten_samples(y.detach()), Implicit()


def check_gradients(
    problem: Any,
    *xs: Any,
    y: Tensor,
    in_dims: Any = 0,
    gradient: GradientPolicy | None = None,
    second: bool = True,
    atol: float = 1e-6,
    rtol: float = 1e-3,
    eps: float = 1e-6,
) -> None:
    """Insist that first and second derivatives of y(x) are those of finite differences.

    Args:
        problem: a `Problem`, or a `Node`.
        xs: float64 inputs; those that are floating are checked, whether they require a gradient or not.
        y: the solution `(b, *u)` at these inputs, from anywhere, regular in every sample.
        in_dims, gradient: as in `argmin`.
        second: check second derivatives too.
        atol, rtol, eps: as in `torch.autograd.gradcheck`.

    Raises:
        InputTypeError: an input is not of float64.
        RuntimeError: of torch's gradcheck, if they are not; it shows both Jacobians.

    >>> import torch, tacit
    >>> square_root = tacit.Problem(None, equality=lambda x, u: u.square() - x)
    >>> x = torch.tensor([[4.0], [9.0]], dtype=torch.float64)
    >>> check_gradients(square_root, x, y=x.sqrt())
    """
    for position, x in enumerate(xs):
        if is_differentiable(x) and x.dtype != torch.float64:
            raise InputTypeError(
                f"check_gradients expects float64, or finite differences drown in rounding; received {describe(x)} as "
                f"input {position}. Pass x.double()."
            )
    solver = follow(problem, *xs, y=y, in_dims=in_dims)
    inputs = tuple(_leaf(x) for x in xs)

    def solution(*xs: Any) -> Tensor:
        return argmin(problem, *xs, solver=solver, in_dims=in_dims, gradient=gradient)

    options: dict[str, Any] = {"atol": atol, "rtol": rtol, "eps": eps, "check_undefined_grad": False}
    gradcheck(solution, inputs, **options)
    if second:
        gradgradcheck(solution, inputs, **options)


def _leaf(x: Any) -> Any:
    return x.detach().clone().requires_grad_() if is_differentiable(x) else x


def check_transforms(
    problem: Any,
    *xs: Any,
    y: Tensor,
    in_dims: Any = 0,
    gradient: GradientPolicy | None = None,
    atol: float = 1e-9,
    rtol: float = 1e-7,
) -> None:
    """Insist that `vmap`, `jacrev` and `jacfwd` through `argmin` find the same y and Dy as `jacobian` does for the batch.

    Takes the arguments of `check_gradients`.

    Raises:
        AssertionError: they do not.

    >>> import torch, tacit
    >>> square_root = tacit.Problem(None, equality=lambda x, u: u.square() - x)
    >>> x = torch.tensor([[4.0], [9.0]], dtype=torch.float64)
    >>> check_transforms(square_root, x, y=x.sqrt())
    """
    inputs = read_inputs(xs, in_dims)
    dims = inputs.in_dims
    floating = inputs.floating
    plain = tuple(x.detach() if isinstance(x, Tensor) else x for x in inputs.values)
    expected = jacobian(problem, *plain, y=y.detach(), in_dims=dims, gradient=gradient)
    blocks = (expected,) if len(plain) == 1 else expected

    def of_one(u: Tensor, *xs: Any) -> Tensor:
        batch_of_one = tuple(x[None] if d == 0 else x for x, d in zip(xs, dims, strict=True))
        return argmin(problem, *batch_of_one, start=u[None], solver=_stay, in_dims=dims, gradient=gradient)[0]

    def compare(found: Tensor, wanted: Tensor) -> None:
        torch.testing.assert_close(found, wanted, atol=atol * max(1.0, _size(wanted)), rtol=rtol)

    compare(vmap(of_one, in_dims=(0, *dims))(y.detach(), *plain), y.detach())
    for transform in (jacrev, jacfwd):
        argnums = tuple(1 + i for i in floating)
        found = vmap(transform(of_one, argnums=argnums), in_dims=(0, *dims))(y.detach(), *plain)
        for i, block in zip(floating, found, strict=True):
            compare(block, blocks[i])


def _stay(*xs: Any, start: Tensor) -> Tensor:
    """The solver of someone who starts at the solution."""
    return start


def _size(tensor: Tensor) -> float:
    return float(tensor.detach().abs().amax()) if tensor.numel() else 0.0
