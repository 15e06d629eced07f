"""Matrix-free solution of a batch of systems `A x = rhs`: conjugate gradients, MINRES, GMRES.

`A` is known by its products only. Every element has its own tolerance, relative to its own right-hand side, and stops
by itself: from then on nothing that happens to its neighbours changes a bit of it. A method runs in cycles; after each
the true residual is computed, and the elements whose recursion was too optimistic go on from there. So what is reported
as converged has converged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

from tacit.errors import OptionError
from tacit.linalg.krylov_cycles import Cycle, CycleResult, cg_cycle, gmres_cycle, minres_cycle, norm
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["KrylovResult", "conjugate_gradients", "gmres", "minres"]

Operator: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class KrylovResult:
    """The solution `x` (b, N) and what is known of each element, all of shape (b,).

    `residual`: |rhs - A x| / |rhs|, computed from x, infinite where the element is not finite (its x is zero).
    `iterations`: products with A, without the one a cycle that checks the residual. `indefinite`: a direction of
    negative or zero curvature was met (conjugate gradients stop there, MINRES goes on, GMRES does not look).
    `rcond`: estimate of the reciprocal condition number of the (preconditioned) operator on the subspace visited; an
    upper bound up to a small factor, since what the right-hand side does not touch is not seen.
    """

    x: Float[Tensor, "b N"]
    residual: Float[Tensor, " b"]
    iterations: Int[Tensor, " b"]
    converged: Bool[Tensor, " b"]
    indefinite: Bool[Tensor, " b"]
    rcond: Float[Tensor, " b"]


def conjugate_gradients(
    matvec: Operator,
    rhs: Float[Tensor, "b N"],
    *,
    tol: float | Float[Tensor, " b"] | None = None,
    max_iter: int | None = None,
    preconditioner: Operator | None = None,
) -> KrylovResult:
    """Solve with symmetric positive definite operators; an element where one is not stops and is `indefinite`.

    `matvec` and `preconditioner` (an approximation of the inverse, symmetric positive definite) map (b, N) to (b, N).
    `tol` bounds the relative residual (default eps^(3/4)), `max_iter` the iterations (default 10 N, at most 1000).

    >>> d = torch.tensor([[1.0, 2.0, 4.0]])
    >>> result = conjugate_gradients(lambda v: d * v, torch.ones(1, 3))
    >>> result.converged, result.iterations
    (tensor([True]), tensor([3]))
    """
    return _in_cycles(cg_cycle, matvec, rhs, tol, max_iter, preconditioner, stop_at_indefinite=True)


def minres(
    matvec: Operator,
    rhs: Float[Tensor, "b N"],
    *,
    tol: float | Float[Tensor, " b"] | None = None,
    max_iter: int | None = None,
    preconditioner: Operator | None = None,
) -> KrylovResult:
    """Solve with symmetric operators of any inertia, by least residual. Arguments as in `conjugate_gradients`.

    >>> d = torch.tensor([[1.0, -2.0]])
    >>> result = minres(lambda v: d * v, torch.ones(1, 2))
    >>> result.converged, result.indefinite
    (tensor([True]), tensor([True]))
    """
    return _in_cycles(minres_cycle, matvec, rhs, tol, max_iter, preconditioner)


def gmres(
    matvec: Operator,
    rhs: Float[Tensor, "b N"],
    *,
    restart: int = 30,
    tol: float | Float[Tensor, " b"] | None = None,
    max_iter: int | None = None,
    preconditioner: Operator | None = None,
) -> KrylovResult:
    """Solve with operators that need not be symmetric, keeping `restart` vectors. The preconditioner acts on the right.

    >>> turn = torch.tensor([[[0.0, -1.0], [1.0, 0.0]]])
    >>> gmres(lambda v: (turn @ v[..., None])[..., 0], torch.tensor([[1.0, 0.0]])).x.abs()
    tensor([[0., 1.]])
    """
    if restart < 1:
        raise OptionError(f"`restart` must be at least 1, got {restart}. Give the number of vectors to keep, e.g. 30.")

    def cycle(
        matvec: Operator,
        precondition: Operator | None,
        r: Tensor,
        target: Tensor,
        budget: Tensor,
        live: Tensor,
    ) -> CycleResult:
        return gmres_cycle(matvec, precondition, r, target, budget, live, restart)

    return _in_cycles(cycle, matvec, rhs, tol, max_iter, preconditioner, restarts=True)


def _in_cycles(
    cycle: Cycle,
    matvec: Operator,
    rhs: Float[Tensor, "b N"],
    tol: float | Float[Tensor, " b"] | None,
    max_iter: int | None,
    preconditioner: Operator | None,
    *,
    stop_at_indefinite: bool = False,
    restarts: bool = False,
) -> KrylovResult:
    """Run cycles, each on the true residual the last one left, until every element is done."""
    b, N = rhs.shape
    eps = torch.finfo(rhs.dtype).eps
    tol = eps**0.75 if tol is None else tol
    max_iter = min(10 * N, 1000) if max_iter is None else max_iter
    if max_iter < 0:
        raise OptionError(
            f"`max_iter` must not be negative, got {max_iter}. Give the most iterations to spend, say 100."
        )
    rhs = rhs.detach()
    finite = rhs.isfinite().all(-1)
    r = torch.where(finite[:, None], rhs, 0.0)
    size = norm(r)
    target = tol * size
    x = torch.zeros_like(r)
    left = size
    used = torch.zeros(b, dtype=torch.int64, device=rhs.device)
    indefinite = torch.zeros_like(finite)
    rcond = torch.ones_like(size)
    active = finite & (left > target)
    first = True
    while bool((active & (used < max_iter)).any()):
        active = active & (used < max_iter)
        out = cycle(matvec, preconditioner, r, target, max_iter - used, active)
        candidate = torch.where(active[:, None], x + out.x, x)
        r_new = rhs - matvec(candidate)
        left_new = norm(r_new)
        broken = active & ~(left_new.isfinite() & ~out.broken)
        # The residual of conjugate gradients may grow on the way: what the first cycle found is taken as it is.
        better = active & ~broken & ((left_new < left) | first)
        finite = finite & ~broken
        x = torch.where(better[:, None], candidate, x)
        r = torch.where(better[:, None], r_new, r)
        # A cycle that gained little has reached what rounding allows; one of GMRES may just be short.
        worthwhile = left_new < (1.0 - 1e-3 if restarts else 0.5) * left
        left = torch.where(better, left_new, left)
        used = used + out.iterations
        indefinite = indefinite | out.indefinite
        rcond = torch.where(active, torch.minimum(rcond, out.rcond), rcond)
        active = active & finite & worthwhile & (left > target)
        if stop_at_indefinite:
            active = active & ~indefinite
        first = False
    x = torch.where(finite[:, None], x, 0.0)
    residual = torch.where(finite, left / torch.where(size > 0, size, 1.0), float("inf"))
    rcond = torch.where(finite, rcond, 0.0)
    return KrylovResult(x, residual, used, finite & (left <= target), indefinite, rcond)
