"""Solves with K that can be differentiated again, in any nesting of transforms.

They use the explicit inverse, found once at plain values, and matrix products: torch's own triangular solves mix up the
elements of a batch when an outer vmap runs over the matrix and an inner one over the right-hand side (2.13).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad

from tacit.implicit.kkt import kkt_matrix, kkt_residual
from tacit.problem import Instance
from tacit.problem.letters import letters, stacked_residual
from tacit.shapes import Bool, Float, Tensor

__all__ = ["attach", "solve_attached"]


def solve_attached(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    keep: Bool[Tensor, "b r"],
    inverse: Float[Tensor, "b N N"],
    regular: Bool[Tensor, " b"],
    v: Float[Tensor, "b N k"],
) -> Float[Tensor, "b N k"]:
    """K^-1 v with the graph of K kept, so that derivatives of any order follow.

    Where a sample is not `regular`, `inverse` is a generalised one, or zero, and held fixed: a singular point has no
    second derivative to get right.
    """
    found = letters(instance, y, lam)
    K = kkt_matrix(found.H, found.A, keep)
    return _refined(K, v, inverse, regular) if _forward_mode() else _Solve.apply(K, v, inverse, regular)


def attach(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    keep: Bool[Tensor, "b r"],
    inverse: Float[Tensor, "b N N"],
    order: int,
) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b r"]]:
    """Give a detached solution its derivatives by steps `z - K^-1 R(x, z)` in plain operations, K^-1 held fixed.

    A step leaves a converged z where it is. Its derivative is right to first order, and every further step adds one: the
    error of a step is the error before it times how far K has moved. So forward mode works at any nesting.
    """
    m = instance.m
    for _ in range(order):
        step = (inverse @ kkt_residual(stacked_residual(instance, y, lam), keep)[..., None])[..., 0]
        y, lam = y - step[:, :m], lam + torch.where(keep, step[:, m:], 0.0)
    return y, lam


def _forward_mode() -> bool:
    """Whether a backward pass runs inside forward mode: its own input may then be dual, whatever y is."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    jvp = torch._C._functorch.TransformType.Jvp
    return forward_ad._current_level >= 0 or any(level.key() == jvp for level in stack)


def _refined(K: Tensor, v: Tensor, inverse: Tensor, regular: Tensor) -> Tensor:
    """K^-1 v by plain operations; every refinement makes one more derivative in K right."""
    w = inverse @ v
    for _ in range(3):
        w = w + torch.where(regular[:, None, None], inverse @ (v - K @ w), 0.0)
    return w


class _Solve(torch.autograd.Function):
    """w = K^-1 v, whose backward is again such a solve."""

    generate_vmap_rule = True

    @staticmethod
    def forward(K: Tensor, v: Tensor, inverse: Tensor, regular: Tensor) -> Tensor:
        w = inverse @ v
        correction = inverse @ (v - K @ w)  # one refinement: an explicit inverse alone loses a few digits
        return w + torch.where(regular[:, None, None], correction, 0.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        K, _, inverse, regular = inputs
        ctx.save_for_backward(K, inverse, regular, output)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None, None]:
        K, inverse, regular, w = ctx.saved_tensors
        s = _Solve.apply(K.mT, g, inverse.mT, regular)
        return torch.where(regular[:, None, None], -s @ w.mT, 0.0), s, None, None
