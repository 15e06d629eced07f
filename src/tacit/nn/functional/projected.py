"""Projections as single operations: the algorithm without autograd, the paper's Dy as its backward.

    L1, simplex   grad_x = |s| o v - s (s'v) / (s's),     grad_r = s'v / s's,      s = sign(y)
    Linf          grad_x = v where y is not clamped,      grad_r = s'v,            s = sign(y) where it is
    L2            grad_x = (r / ||x||) (v - y (y'v)/r^2), grad_r = y'v / r

"printed" keeps v on the plateau: grad_x = v - s (s'v) / (s's) for both norms with kinks. A few passes over the rows,
where the same in plain operations, which `projection` has for the compiler, makes dozens. Claim key: DDN[lp-projection].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from tacit.nn.functional.threshold import level
from tacit.shapes import Bool, Float, Tensor

__all__ = ["Target", "beyond_range", "project", "scaled_norm"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]


@dataclass(frozen=True)
class Target:
    """What is projected onto: a `"sphere"`, a `"ball"` or the `"simplex"`, p in {1, 2, infinity}, which gradient."""

    kind: str
    p: float
    plateau: str


def project(x: Rows, radius: Column, target: Target) -> Rows:
    """Return the projection of each row, differentiable in both arguments, in reverse mode."""
    y: Rows = _Projected.apply(x, radius, target)
    return y


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(x: Rows, radius: Column, target: Target) -> Rows:
        return _find(x, radius, target)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Rows) -> None:
        x, radius, ctx.target = inputs
        ctx.save_for_backward(x, radius, output)

    @staticmethod
    def backward(ctx: Any, v: Rows) -> tuple[Tensor | None, ...]:
        x, radius, y = ctx.saved_tensors
        grad_x, grad_radius = _pull(x, radius, y, v, ctx.target)
        wanted = ctx.needs_input_grad
        return grad_x if wanted[0] else None, grad_radius if wanted[1] else None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Any, radius: Any, target: Target) -> Any:
        """Project the mapped rows as more rows."""

        def flat(part: Tensor, at: int | None) -> Tensor:
            wide = part.movedim(at, 0) if at is not None else part.expand(info.batch_size, *part.shape)
            return wide.reshape(-1, wide.shape[-1])

        y = project(flat(x, in_dims[0]), flat(radius, in_dims[1]), target)
        return y.reshape(info.batch_size, -1, y.shape[-1]), 0


def scaled_norm(x: Rows) -> tuple[Column, Column]:
    """Return (s, q) with ||x||_2 = s q, neither of which overflows or vanishes; s has no gradient. A zero row: (1, 0)."""
    s = x.detach().abs().amax(-1, keepdim=True)
    s = torch.where(s > 0, s, 1.0)
    return s, torch.linalg.vector_norm(x / s, dim=-1, keepdim=True)


def beyond_range(factor: Column) -> Bool[Tensor, "r 1"]:
    """Return whether a derivative, r / ||x|| at a subnormal x, leaves no room in its dtype for what it multiplies."""
    return factor > torch.finfo(factor.dtype).eps * torch.finfo(factor.dtype).max


def _find(x: Rows, r: Column, target: Target) -> Rows:
    ball = target.kind == "ball"
    if target.kind == "simplex":
        below, theta = level(x, r)
        return below.sub_(theta).clamp_min_(0.0)
    if target.p == 1:
        size = x.abs()
        inside = _within_l1(size, r) if ball else None
        below, theta = level(size, r)
        # Adding 0 makes a plus of the minus of -0: zeros move upwards.
        y = below.sub_(theta).clamp_min_(0.0).copysign_(size.copy_(x).add_(0.0))
        return y if inside is None else torch.where(inside, x, y)
    if target.p == 2:
        return _l2(x, r, ball)
    y = torch.maximum(x, -r).minimum(r)
    if ball:
        return y
    # Inside, the first of the largest coordinates alone moves; elsewhere it has its place already.
    top, first = x.abs().max(-1, keepdim=True)
    value = x.gather(-1, first)
    moved = torch.where(top < r, torch.where(value < 0, -r, r), y.gather(-1, first))
    return y.scatter_(-1, first, moved)


def _l2(x: Rows, r: Column, ball: bool) -> Rows:
    s, q = scaled_norm(x)
    if ball:
        outside = ~(s * q <= r)  # NaN and infinity too: their rows become NaN
        return (x * torch.where(outside, 1 / s, 1.0)).mul_(torch.where(outside, r / q, 1.0))
    # A subnormal has no reciprocal, hence the division.
    centre = q == 0
    return (x / s).mul_(r / torch.where(centre, 1.0, q)).add_(torch.where(centre, r / math.sqrt(x.shape[-1]), 0.0))


def _within_l1(size: Rows, r: Column) -> Bool[Tensor, "r 1"]:
    return ~(size.sum(-1, keepdim=True) > r * (1 + 4 * torch.finfo(r.dtype).eps))


def _pull(x: Rows, r: Column, y: Rows, v: Rows, target: Target) -> tuple[Rows, Column]:
    """Return v' Dy for x and radius, in differentiable operations."""
    if target.p == 2 and target.kind != "simplex":
        return _pull_l2(x, r, y, v, target.kind == "ball")
    if math.isinf(target.p):
        # Signs, because arithmetic is quicker than masks: 1 where clamped, else 0.
        beyond = x.detach().abs() - r.detach() if target.kind == "ball" else y.detach().abs() - r.detach()
        moved = beyond.sign_().relu_() if target.kind == "ball" else beyond.sign_().add_(1.0)
        s = y.detach().sign().mul_(moved)
        pull = (s * v).sum(-1, keepdim=True)
        if target.plateau == "zero":
            return v * moved.neg_().add_(1.0), pull
        share = pull / moved.sum(-1, keepdim=True).clamp_min(1.0)
        return torch.addcmul(v, s, share, value=-1), pull
    s = y.detach().sign()
    mask = s.abs()
    share = (s * v).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)
    grad = torch.addcmul(v if target.plateau == "printed" else v * mask, s, share, value=-1)
    if target.kind == "ball":
        inside = _within_l1(x.detach().abs(), r.detach())
        return torch.where(inside, v, grad), torch.where(inside, 0.0, share)
    return grad, share


def _pull_l2(x: Rows, r: Column, y: Rows, v: Rows, ball: bool) -> tuple[Rows, Column]:
    s, q = scaled_norm(x)
    factor = (r / torch.where(q > 0, q, 1.0)) / s
    share = (y * v).sum(-1, keepdim=True) / r
    if ball:
        inside = s * q <= r
        share, factor = torch.where(inside, 0.0, share), torch.where(inside, 1.0, factor)
    else:  # none in x at the centre, nor beyond the range of the dtype
        factor = torch.where((q == 0) | beyond_range(factor), 0.0, factor)
    return torch.addcmul(v, y, share / r, value=-1) * factor, share
