"""The KKT system solved without forming H: by Krylov iterations, or by the structure that H is known to have.

Memory is O(m), or O(r m) with r rows, and the cost a few dozen Hessian-vector products. Three ways, in this order:
a Hessian of declared or detected structure is recovered by a few products and factored in linear time; otherwise
conjugate gradients run in the null space of the active rows; where that meets negative curvature, or the rows are too
many to form, MINRES runs on the whole KKT operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import GradientError
from tacit.implicit.kkt import kept_rows, mark
from tacit.implicit.nonsmooth import balances_at_kink
from tacit.implicit.policy import Implicit
from tacit.linalg import (
    KrylovResult,
    Structure,
    StructuredMatrix,
    bordered_solve,
    conjugate_gradients,
    detect_structure,
    equilibrate,
    factor,
    minres,
    misfit,
)
from tacit.problem import Flag, Instance
from tacit.problem.active_set import RowState
from tacit.problem.letters import stacked_residual
from tacit.problem.scales import probe_direction, root_eps, unknown_scale
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Survey", "kkt_product", "solve_matrix_free", "survey"]

_FORMED_ROWS = 50_000_000  # entries of A that may be formed; beyond, only products with it are taken


@dataclass(frozen=True)
class Survey:
    """What can be told of every sample without solving: rows that take part, flags so far, samples without a gradient."""

    keep: Bool[Tensor, "b r"]
    flags: Int[Tensor, " b"]
    dead: Bool[Tensor, " b"]


def survey(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    state: Int[Tensor, "b r"],
    failed: Bool[Tensor, " b"],
    policy: Implicit,
    *,
    broken: Bool[Tensor, " b"],
    refuse: bool,
) -> Survey:
    """Flags that need no factorisation; stationarity is measured by the residual against the curvature along a probe."""
    keep = kept_rows(state, policy)
    R = stacked_residual(instance, y, lam)
    scale = unknown_scale(instance, y)
    direction = probe_direction(scale)
    bend = instance.hessian_product(y, lam, direction)
    finite = (R.abs().amax(1) + bend.abs().amax(1)).isfinite() & ~broken
    flags = torch.zeros(instance.batch, dtype=torch.int64, device=y.device)
    flags = mark(flags, ~finite, Flag.NONFINITE)
    flags = mark(flags, failed, Flag.UNCONVERGED)
    flags = mark(flags, (state == RowState.WEAK).any(1), Flag.WEAKLY_ACTIVE)
    flags = mark(flags, (state == RowState.DEPENDENT).any(1), Flag.DEPENDENT)
    m, tiny = instance.m, torch.finfo(y.dtype).tiny
    pull = (instance.jacobian_transpose_product(y, lam) * scale).abs().amax(1)
    size = torch.maximum((bend * scale).abs().amax(1), pull)
    left = (R[:, :m] * scale).abs().amax(1)
    away = torch.where(left > 0, left / size.clamp_min(tiny), 0.0)
    if instance.r:
        length = instance.jacobian_product(y, direction).abs()
        away = torch.maximum(away, torch.where(keep, R[:, m:].abs() / length.clamp_min(tiny), 0.0).amax(1))
    rough = finite & (away > policy.stationary_within(y.dtype))
    if bool(rough.any()):
        kink = rough.clone()
        kink[rough] = balances_at_kink(instance.take(rough), y[rough], lam[rough], keep[rough])
        flags = mark(mark(flags, kink, Flag.NONSMOOTH), rough & ~kink, Flag.NOT_STATIONARY)
        rough = rough & ~kink
    return Survey(keep, flags, (~finite | rough | failed) if refuse else ~finite)


def kkt_product(
    instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], keep: Bool[Tensor, "b r"], w: Tensor
) -> Float[Tensor, "b N"]:
    """K w in differentiable operations, with rows of the identity where a row does not take part."""
    if not instance.r:
        return instance.hessian_product(y, lam, w)
    m = instance.m
    top, bottom = w[:, :m], torch.where(keep, w[:, m:], 0.0)
    first = instance.hessian_product(y, lam, top) + instance.jacobian_transpose_product(y, bottom)
    return torch.cat([first, torch.where(keep, instance.jacobian_product(y, top), w[:, m:])], dim=1)


def solve_matrix_free(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    keep: Bool[Tensor, "b r"],
    v: Float[Tensor, "b N"],
    policy: Implicit,
) -> tuple[Float[Tensor, "b N"], Bool[Tensor, " b"]]:
    """K^-1 v on plain tensors, and which samples were not solved to the tolerance or are singular."""
    m, r = instance.m, instance.r
    product = instance.hessian_operator(y, lam)
    formed = instance.batch * r * m <= _FORMED_ROWS
    A = torch.where(keep[..., None], instance.jacobian(y), 0.0) if r and formed else None
    structure = policy.structure
    if (
        structure is None
        and policy.linear_solver == "auto"
        and policy.preconditioner is None
        and (A is not None or not r)
    ):
        structure = detect_structure(product, m, y.dtype, y.device, instance.batch)
    if structure is not None:
        H = structure.recover(product, m, v.dtype, v.device, instance.batch)
        if policy.structure is not None:
            _insist(structure, misfit(H, product))
        return _by_structure(H, A if A is not None else y.new_zeros(instance.batch, r, m), v)
    if A is not None and policy.preconditioner is None:
        w, trouble = _in_null_space(product, A, keep, v, policy)
    elif not r:
        result = conjugate_gradients(product, v, **_effort(policy, m), preconditioner=policy.preconditioner)
        w, trouble = result.x, _trouble(result) | result.indefinite
    else:
        w, trouble = torch.zeros_like(v), torch.ones(instance.batch, dtype=torch.bool, device=v.device)
    if bool(trouble.any()):
        operator = _whole_operator(instance.take(trouble), y[trouble], lam[trouble], keep[trouble])
        if policy.singular == "proximal":
            operator = _shifted(operator, m, policy.delta, v[trouble])
        again = minres(operator, v[trouble], **_effort(policy, m + r), preconditioner=policy.preconditioner)
        w[trouble] = again.x
        still = trouble.clone()
        still[trouble] = _trouble(again)
        trouble = still
    return w, trouble


def _effort(policy: Implicit, size: int) -> dict[str, Any]:
    return {"tol": policy.krylov_tol, "max_iter": policy.krylov_max_iter or min(10 * size, 5000)}


def _trouble(result: KrylovResult) -> Tensor:
    return ~result.converged | (result.rcond < 256 * torch.finfo(result.x.dtype).eps)


def _whole_operator(
    instance: Instance, y: Tensor, lam: Tensor, keep: Tensor
) -> Callable[[Float[Tensor, "b N"]], Float[Tensor, "b N"]]:
    product = instance.hessian_operator(y, lam)
    m = instance.m
    if not instance.r:
        return product

    def operator(w: Tensor) -> Tensor:
        top, bottom = w[:, :m], torch.where(keep, w[:, m:], 0.0)
        first = product(top) + instance.jacobian_transpose_product(y, bottom)
        return torch.cat([first, torch.where(keep, instance.jacobian_product(y, top), w[:, m:])], dim=1)

    return operator


def _shifted(
    operator: Callable[[Tensor], Tensor], m: int, delta: float, like: Tensor
) -> Callable[[Float[Tensor, "b N"]], Float[Tensor, "b N"]]:
    """The operator of the proximal problem: `delta` times the size of H is added to its diagonal."""
    size = _size(lambda w: operator(torch.nn.functional.pad(w, (0, like.shape[1] - m)))[:, :m], like[:, :m])
    on_y = (torch.arange(like.shape[1], device=like.device) < m).to(like.dtype)
    return lambda w: operator(w) + delta * size * on_y * w


def _size(product: Callable[[Tensor], Tensor], like: Float[Tensor, "b m"]) -> Float[Tensor, "b 1"]:
    """About the size of H, one where it is zero."""
    size = product(probe_direction(torch.ones_like(like))).abs().amax(1, keepdim=True)
    return torch.where(size > 0, size, 1.0)


def _insist(structure: Structure, error: Float[Tensor, " b"]) -> None:
    """Refuse a declared structure that the Hessian does not have: its solve would be silently wrong."""
    wrong = (error > root_eps(error.dtype)).nonzero().flatten().tolist()
    if wrong:
        raise GradientError(
            f"Implicit(structure={structure!r}) expects a Hessian of that structure; in samples {wrong[:8]} it has entries "
            f"elsewhere (relative size {float(error.max()):.1e}). Declare a wider structure, or leave structure=None, which "
            "sees a narrow band by itself."
        )


def _by_structure(H: StructuredMatrix, A: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    m = A.shape[2]
    solved = bordered_solve(H, A, v[:, :m, None], v[:, m:, None])
    w = torch.cat([solved.dy, solved.dnu], dim=1)[..., 0]
    bad = ~solved.ok | (solved.rcond < 256 * torch.finfo(v.dtype).eps)
    return torch.where(solved.ok[:, None], w, 0.0), bad


def _in_null_space(
    product: Callable[[Tensor], Tensor], A: Tensor, keep: Tensor, v: Tensor, policy: Implicit
) -> tuple[Tensor, Tensor]:
    """Conjugate gradients on P H P, with P the projector on the null space of the rows that take part."""
    m = A.shape[2]
    length = A.norm(dim=2).clamp_min(torch.finfo(A.dtype).tiny)
    unit = torch.where(keep[..., None], A / length[..., None], 0.0)
    gram = unit @ unit.mT + torch.diag_embed((~keep).to(A.dtype))
    factored = factor(gram, equilibrate(gram))

    def weigh(right: Tensor) -> Tensor:  # (A A')^-1 right, in unit rows
        return factored.solve(right[..., None], gram)[..., 0]

    def project(w: Tensor) -> Tensor:
        for _ in range(2):  # twice is enough to leave the rows exactly
            w = w - (unit.mT @ weigh((unit @ w[..., None])[..., 0])[..., None])[..., 0]
        return w

    top, bottom = v[:, :m], torch.where(keep, v[:, m:] / length, 0.0)
    particular = (unit.mT @ weigh(bottom)[..., None])[..., 0]
    rhs = project(top - product(particular))
    size = _size(product, top)

    def reduced(
        w: Tensor,
    ) -> Tensor:  # off the null space a multiple of the identity, so that the condition is that within
        inside = project(w)
        return project(product(inside)) + size * (w - inside)

    result = conjugate_gradients(reduced, rhs, **_effort(policy, m))
    dy = particular + project(result.x)
    dnu = weigh((unit @ (top - product(dy))[..., None])[..., 0]) / length
    bad = _trouble(result) | result.indefinite | (factored.rcond < 256 * torch.finfo(A.dtype).eps)
    return torch.cat([dy, torch.where(keep, dnu, v[:, m:])], dim=1), bad
