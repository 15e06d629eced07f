"""Robust pooling y = argmin_u sum_i w_i phi(u - x_i; alpha), found globally and differentiated exactly.

    Dy = -H^{-1} B = w_i phi''(y - x_i) / sum_j w_j phi''(y - x_j)        (unconstrained proposition, m = 1)

and likewise in alpha and in the weights. Domain: n >= 1 points, alpha > 0, weights >= 0. The formula needs H, not
that H > 0: a negative curvature is kept, a zero one is singular. Claim keys: DDN[robust-pooling], DDN[unconstrained].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tacit.errors import InputTypeError, InputValueError
from tacit.functions.penalties import Penalty, get_penalty
from tacit.nn.functional.arguments import (
    choice,
    dims_of,
    full_precision,
    in_forward_mode,
    need_floating,
    per_row,
    rows_of,
    working_dtype,
)
from tacit.nn.functional.exact_location import total
from tacit.nn.functional.location import locate
from tacit.shapes import Float, Tensor

__all__ = ["robust_pool"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]

_CHUNK = 1 << 17  # numbers handled at once when eager


def robust_pool(
    x: Tensor,
    penalty: str | Penalty,
    alpha: float | Tensor = 1.0,
    dim: int | Sequence[int] = -1,
    keepdim: bool = False,
    *,
    weight: Tensor | None = None,
    search: str = "global",
    singular: str = "zero",
) -> Tensor:
    """Return the robust location of the numbers along `dim`.

        y = argmin_u sum_i w_i phi(u - x_i; alpha)

    Args:
        x: any shape, floating.
        penalty: "quadratic", "pseudo_huber", "huber", "welsch", "truncated_quadratic", or a `Penalty` of your own.
        alpha: a number, or a tensor that broadcasts to the shape of `x` without `dim`: per channel, per sample.
        dim: the dim or dims to pool over, together.
        keepdim: keep them with size 1.
        weight: non-negative, broadcasts to `x`; what has weight 0 does not exist, not even as NaN. A set without
            weight pools to 0, with gradient zero.
        search: "global", or "paper": the better of two descents, from the mean and the median.
        singular: the gradient where the curvature sum is zero: "zero", or "uniform" (that of the mean).

    Returns:
        The shape of `x` without `dim`. Where the minimisers are an interval (Huber), its midpoint; where several
        minimisers tie, one of them. An infinite number is an outlier like any other, except to the quadratic. A row with
        NaN, with nothing finite, with a negative weight, or with an alpha that is not positive and finite is NaN, with
        gradient zero.

    Raises:
        InputTypeError, InputValueError, OptionError, OptionTypeError: an argument of a kind that cannot be meant.

    >>> robust_pool(torch.tensor([0.0, 0.1, 0.2, 100.0]), "welsch")
    tensor(0.1000)
    """
    need_floating(x)
    plan = _Plan(
        get_penalty(penalty),
        choice(search, ("global", "paper"), "search"),
        choice(singular, ("zero", "uniform"), "singular"),
    )
    dims = dims_of(dim, x.ndim)
    with full_precision(x):
        working = x.to(working_dtype(x))
        rows, weights = rows_of(working, dims), None
        if weight is not None:
            weights = rows_of(_weight_like(weight, working), dims)
            # A hole may hold anything; a finite value stays, for it says what a weight there would change.
            rows = torch.where((weights > 0) | rows.isfinite(), rows, 0.0)
        y = _pool(rows, per_row(alpha, working, dims, "alpha"), weights, plan)
    left = [1 if d in dims else size for d, size in enumerate(x.shape) if keepdim or d not in dims]
    return y.reshape(left).to(x.dtype)


class _Plan(NamedTuple):
    """What is not a tensor."""

    penalty: Penalty
    search: str
    singular: str


def _weight_like(weight: Tensor, x: Tensor) -> Tensor:
    if not isinstance(weight, Tensor):
        raise InputTypeError(f"weight expects a tensor; received {type(weight).__name__}.")
    if weight.device != x.device:
        raise InputTypeError(f"weight expects the device of x, {x.device}; received {weight.device}. Move it there.")
    if weight.ndim > x.ndim or any(
        have not in (1, want) for have, want in zip(reversed(weight.shape), reversed(x.shape), strict=False)
    ):
        raise InputValueError(
            f"weight expects a shape that broadcasts to that of x, {tuple(x.shape)}; received {tuple(weight.shape)}."
        )
    return weight.to(x.dtype).expand(x.shape)


def _pool(x: Rows, alpha: Column, weight: Rows | None, plan: _Plan) -> Column:
    if torch.compiler.is_compiling():
        with torch.no_grad():
            found = locate(x.detach(), alpha.detach(), _detached(weight), plan.penalty, plan.search)
        return _Pooled.apply(x, alpha, weight, found, plan)
    if not in_forward_mode():
        return _Pooled.apply(x, alpha, weight, None, plan)
    y = _Pooled.apply(x.detach(), alpha.detach(), _detached(weight), None, plan)
    for _ in range(2):  # one step attaches the first derivative, the next the second
        y = _attach(x, alpha, weight, y, plan)
    return y


def _detached(weight: Rows | None) -> Rows | None:
    return None if weight is None else weight.detach()


def _attach(x: Rows, alpha: Column, weight: Rows | None, y: Column, plan: _Plan) -> Column:
    """Return y - g / H: y itself in value, one more derivative right."""
    slope, curvature, _ = plan.penalty.row_derivatives(y - x, alpha)
    g, h = total(slope, weight), total(curvature, weight)
    flat = _is_singular(h, curvature, weight) | ~y.isfinite()
    if plan.singular == "uniform":
        share = torch.ones_like(x) if weight is None else weight
        g = torch.where(flat, total((y - x) - (y - x).detach(), weight), g)
        h = torch.where(flat, total(share, None), h)
        flat = ~h.isfinite() | (h == 0)
    step = torch.where(flat, 0.0, g / torch.where(flat, 1.0, h))
    return y - (step - step.detach())


def _is_singular(h: Column, curvature: Rows, weight: Rows | None) -> Tensor:
    size = total(curvature.detach().abs(), weight)
    bound = 8 * torch.finfo(h.dtype).eps * size
    return ~(h.detach().abs() > bound) | ~size.isfinite()


class _Pooled(torch.autograd.Function):
    """The location, with the proposition as its backward: in differentiable operations and with the live output."""

    @staticmethod
    def forward(x: Rows, alpha: Column, weight: Rows | None, found: Column | None, plan: _Plan) -> Column:
        return locate(x, alpha, weight, plan.penalty, plan.search) if found is None else found.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Column) -> None:
        x, alpha, weight, _, plan = inputs
        ctx.plan = plan
        ctx.save_for_backward(x, alpha, weight, output)

    @staticmethod
    def backward(ctx: Any, v: Column) -> tuple[Tensor | None, ...]:
        x, alpha, weight, y = ctx.saved_tensors
        wanted = tuple(ctx.needs_input_grad[:3])
        if torch.compiler.is_compiling():
            # Tied to v, the masks below are recomputed from x in one fused pass; known in the forward pass already,
            # the compiler would store them there, a byte for every number and a slow one.
            y = torch.where(v.isnan(), v, y)
        with full_precision(x):
            if torch.compiler.is_compiling() or torch.is_grad_enabled() or x.numel() <= _CHUNK or not x.is_cpu:
                grads: tuple[Tensor | None, ...] = _backward(x, alpha, weight, y, v, wanted, ctx.plan)
            else:
                grads = _backward_in_chunks(x, alpha, weight, y, v, wanted, ctx.plan)
        return (*grads, None, None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Any, alpha: Any, weight: Any, found: Any, plan: Any) -> Any:
        """Pool the mapped rows as more rows."""

        def flat(part: Tensor | None, at: int | None) -> Tensor | None:
            if part is None:
                return None
            wide = part.movedim(at, 0) if at is not None else part.expand(info.batch_size, *part.shape)
            return wide.reshape(-1, wide.shape[-1])

        y = _Pooled.apply(*(flat(part, at) for part, at in zip((x, alpha, weight, found), in_dims, strict=False)), plan)
        return y.reshape(info.batch_size, -1, 1), 0


def _backward(
    x: Rows, alpha: Column, weight: Rows | None, y: Column, v: Column, wanted: tuple[bool, ...], plan: _Plan
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return v' Dy for x, alpha and weight, as far as wanted."""
    slope, curvature, mixed = plan.penalty.row_derivatives(y - x, alpha)
    if weight is not None:
        curvature, mixed = curvature * weight, mixed * weight
    h = curvature.sum(-1, keepdim=True)
    flat = _is_singular(h, curvature, None) | ~y.isfinite()
    scaled = torch.where(flat, 0.0, v / torch.where(flat, 1.0, h))
    grad_x = grad_alpha = grad_weight = None
    if wanted[0]:
        grad_x = torch.where(flat, 0.0, scaled * curvature)
        if plan.singular == "uniform":
            share = torch.full_like(x, 1 / x.shape[-1]) if weight is None else weight / weight.sum(-1, keepdim=True)
            usable = flat & y.isfinite() & share.isfinite()
            grad_x = torch.where(usable, v * share, grad_x)
    if wanted[1]:
        grad_alpha = -torch.where(flat, 0.0, scaled * mixed).sum(-1, keepdim=True)
    if wanted[2]:
        grad_weight = -torch.where(flat, 0.0, scaled * slope)
    return grad_x, grad_alpha, grad_weight


def _backward_in_chunks(
    x: Rows, alpha: Column, weight: Rows | None, y: Column, v: Column, wanted: tuple[bool, ...], plan: _Plan
) -> tuple[Tensor | None, ...]:
    """Do the same some rows at a time: nothing of the size of x is made but the gradients."""
    out = [
        torch.empty_like(part) if want and part is not None else None
        for part, want in zip((x, torch.empty_like(y), weight), wanted, strict=True)
    ]
    size = max(1, _CHUNK // x.shape[-1])
    for begin in range(0, x.shape[0], size):
        rows = slice(begin, begin + size)
        part_weight = None if weight is None else weight[rows]
        grads = _backward(x[rows], alpha[rows], part_weight, y[rows], v[rows], wanted, plan)
        for whole, part in zip(out, grads, strict=True):
            if whole is not None and part is not None:
                whole[rows] = part
    return tuple(out)
