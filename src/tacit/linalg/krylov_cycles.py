"""One cycle each of conjugate gradients, MINRES and GMRES, for a batch in which every element stops by itself.

A cycle starts from zero, works on the right-hand side `r`, and stops an element when its residual by recursion is at
the target, its budget is spent, it breaks down or it is not finite. An element that has stopped gets steps of length
zero: its state is passed on to the operator, but keeps every bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Cycle", "CycleResult", "cg_cycle", "gmres_cycle", "minres_cycle", "norm"]

Operator: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class CycleResult:
    """The correction `x` (b, N), and per element: iterations, curvature not positive, not finite, condition."""

    x: Float[Tensor, "b N"]
    iterations: Int[Tensor, " b"]
    indefinite: Bool[Tensor, " b"]
    broken: Bool[Tensor, " b"]
    rcond: Float[Tensor, " b"]


# (matvec, preconditioner, r (b, N), target (b,), budget (b,), live (b,)) -> result
Cycle: TypeAlias = Callable[[Operator, "Operator | None", Tensor, Tensor, Tensor, Tensor], CycleResult]


def dot(u: Float[Tensor, "*b N"], v: Float[Tensor, "*b N"]) -> Float[Tensor, "*b"]:
    """Return the inner product over the last axis."""
    product: Tensor = (u * v).sum(-1)
    return product


def norm(v: Float[Tensor, "*b N"]) -> Float[Tensor, "*b"]:
    """Return the Euclidean norm over the last axis."""
    return dot(v, v).sqrt()


def _over(a: Tensor, b: Tensor, where: Tensor) -> Tensor:
    """Return `a / b` where allowed and zero elsewhere, without a division by zero on the way."""
    return torch.where(where, a / torch.where(where, b, 1.0), 0.0)


def _orthogonalised(
    q: Float[Tensor, "b N"], known: Float[Tensor, "b j N"]
) -> tuple[Float[Tensor, "b N"], Float[Tensor, "b j"]]:
    """Take the orthonormal `known` out of `q`; twice, for Gram-Schmidt loses orthogonality, and does so once only."""
    parts = torch.zeros_like(known[:, :, 0])
    for _ in range(2):
        h = (known @ q[:, :, None])[:, :, 0]
        q, parts = q - (h[:, None] @ known)[:, 0], parts + h
    return q, parts


def _next(live: Bool[Tensor, " b"], old: Tensor, now: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Move a recursion on, `(old, now) -> (now, new)`, where an element is live."""
    where = live if now.dim() == 1 else live[:, None]
    return torch.where(where, now, old), torch.where(where, new, now)


def _rcond(least: Float[Tensor, " b"], largest: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
    """Return the ratio: one where no step was taken (`least` is infinite), zero for an operator that is zero."""
    unit = torch.where(largest > 0, largest, 1.0)
    return (least / unit).clamp(max=1.0)


def _all_stopped(live: Bool[Tensor, " b"], step: int) -> bool:
    """Ask whether work is left: every time on the CPU, seldom where the question costs a synchronisation."""
    return (live.device.type == "cpu" or step % 8 == 0) and not bool(live.any())


def cg_cycle(
    matvec: Operator,
    precondition: Operator | None,
    r: Float[Tensor, "b N"],
    target: Float[Tensor, " b"],
    budget: Int[Tensor, " b"],
    live: Bool[Tensor, " b"],
) -> CycleResult:
    """Run preconditioned conjugate gradients."""
    eps = torch.finfo(r.dtype).eps
    x = torch.zeros_like(r)
    z = r if precondition is None else precondition(r)
    p, rz = z, dot(r, z)
    count = torch.zeros_like(budget)
    indefinite, singular, broken = (torch.zeros_like(live) for _ in range(3))
    steps: list[tuple[Tensor, Tensor, Tensor]] = []
    step = 0
    while not _all_stopped(live, step):
        step += 1
        q = matvec(p)
        curvature, lengths = dot(p, q), dot(p, p) * dot(q, q)
        broken = broken | (live & ~(curvature.isfinite() & lengths.isfinite() & rz.isfinite()))
        noise = 4 * eps * lengths.sqrt()
        flat = live & ~broken & ((curvature <= noise) | (rz <= 0))
        singular = singular | (flat & (curvature.abs() <= noise))
        indefinite = indefinite | flat
        count = count + live
        live = live & ~broken & ~flat
        alpha = _over(rz, curvature, live)
        x = torch.where(live[:, None], x + alpha[:, None] * p, x)
        r = torch.where(live[:, None], r - alpha[:, None] * q, r)
        z = r if precondition is None else precondition(r)
        rz_new = dot(r, z)
        beta = _over(rz_new, rz, live)
        steps.append((alpha, beta, live))
        live = live & (norm(r) > target) & (count < budget)
        p = torch.where(live[:, None], z + beta[:, None] * p, p)
        rz = torch.where(live, rz_new, rz)
    return CycleResult(x, count, indefinite, broken, torch.where(singular, 0.0, _lanczos_rcond(steps, rz)))


def _lanczos_rcond(steps: list[tuple[Tensor, Tensor, Tensor]], like: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
    """Estimate the reciprocal condition number from the tridiagonal matrix that conjugate gradients build.

    Its smallest eigenvalue lies between two of a geometric row of shifts: at the lower one all pivots are positive.
    """
    diagonal, off = [], []
    previous = torch.zeros_like(like)
    coupling = torch.zeros_like(like)
    for alpha, beta, live in steps:
        inverse = _over(torch.ones_like(alpha), alpha, live & (alpha > 0))
        diagonal.append(torch.where(inverse > 0, inverse + previous, 0.0))
        off.append(coupling * (inverse > 0))
        previous, coupling = beta * inverse, beta * inverse.square()
    if not diagonal:
        return torch.ones_like(like)
    largest = torch.stack(diagonal).amax(0)
    top = torch.where(largest > 0, largest, 1.0)
    exponents = torch.arange(0, -54, -0.5, dtype=like.dtype, device=like.device)
    shifts = torch.exp2(exponents)
    passed = torch.ones(like.shape[0], shifts.shape[0], dtype=torch.bool, device=like.device)
    pivot = torch.ones_like(passed, dtype=like.dtype)
    for d, o in zip(diagonal, off, strict=True):
        # An element that has stopped has an empty row here; it is as good as the largest.
        entry = torch.where(d > 0, d / top, 2.0)
        pivot = entry[:, None] - shifts - (o / top.square())[:, None] / pivot
        passed = passed & (pivot > 0)
        pivot = torch.where(pivot.abs() > 0, pivot, torch.finfo(like.dtype).tiny)
    smallest = torch.where(passed, shifts, 0.0).amax(-1)
    return torch.where(largest > 0, (smallest * 2**0.25).clamp(max=1.0), 1.0)


def minres_cycle(
    matvec: Operator,
    precondition: Operator | None,
    r: Float[Tensor, "b N"],
    target: Float[Tensor, " b"],
    budget: Int[Tensor, " b"],
    live: Bool[Tensor, " b"],
) -> CycleResult:
    """Run preconditioned MINRES; the target is scaled to the norm the preconditioner measures in."""
    tiny, eps = torch.finfo(r.dtype).tiny, torch.finfo(r.dtype).eps
    x, w, w_old, v_old = (torch.zeros_like(r) for _ in range(4))
    v = r
    z = v if precondition is None else precondition(v)
    inner = dot(v, z)
    indefinite, broken = live & (inner <= 0), live & ~inner.isfinite()
    live = live & (inner > 0) & ~broken
    gamma = torch.where(live, inner, 1.0).sqrt()
    scaled_target = target * gamma / norm(r).clamp(min=tiny)
    gamma_old, eta = torch.ones_like(gamma), gamma
    c_old, c = torch.ones_like(gamma), torch.ones_like(gamma)
    s_old, s, pivot, size = (torch.zeros_like(gamma) for _ in range(4))
    least = torch.full_like(gamma, float("inf"))
    count, step = torch.zeros_like(budget), 0
    while not _all_stopped(live, step):
        step += 1
        z = z / gamma[:, None]
        q = matvec(z)
        delta = dot(q, z)
        v_new = q - (delta / gamma)[:, None] * v - (gamma / gamma_old)[:, None] * v_old
        z_new = v_new if precondition is None else precondition(v_new)
        inner = dot(z_new, v_new)
        broken = broken | (live & ~(inner.isfinite() & delta.isfinite()))
        count = count + live
        live = live & ~broken
        gamma_new = torch.where(live, inner, 0.0).clamp(min=0.0).sqrt()
        # Pivots of the tridiagonal matrix: all positive as long as the operator is, on what was visited.
        pivot = delta if step == 1 else delta - _over(gamma.square(), pivot, ~indefinite & live)
        size = torch.maximum(size, torch.where(live, delta.abs() + gamma_new, 0.0))
        indefinite = indefinite | (live & (pivot <= 4 * eps * size))
        a0 = c * delta - c_old * s * gamma
        a1 = torch.hypot(a0, gamma_new)
        a2, a3 = s * delta + c_old * c * gamma, s_old * gamma
        # |A r| relative to |A| |r|: when it vanishes the residual is least, and another step would divide by noise.
        flat = live & (torch.hypot(a0, c * gamma_new) <= eps**0.8 * size)
        indefinite, live = indefinite | flat, live & ~flat
        c_new, s_new = _over(a0, a1, live), _over(gamma_new, a1, live)
        direction = (z - a3[:, None] * w_old - a2[:, None] * w) / torch.where(live, a1, 1.0)[:, None]
        x = torch.where(live[:, None], x + (c_new * eta)[:, None] * direction, x)
        least = torch.where(flat, 0.0, torch.where(live, torch.minimum(least, a1), least))
        eta = torch.where(live, -s_new * eta, eta)
        live = live & (eta.abs() > scaled_target) & (count < budget) & (gamma_new > tiny)
        w_old, w = _next(live, w_old, w, direction)
        v_old, v = _next(live, v_old, v, v_new)
        c_old, c = _next(live, c_old, c, c_new)
        s_old, s = _next(live, s_old, s, s_new)
        z = torch.where(live[:, None], z_new, z)
        gamma_old = torch.where(live, gamma, gamma_old)
        # A stopped element's z is divided again and again: by one.
        gamma = torch.where(live, gamma_new, 1.0)
    return CycleResult(x, count, indefinite, broken, _rcond(least, size))


def gmres_cycle(
    matvec: Operator,
    precondition: Operator | None,
    r: Float[Tensor, "b N"],
    target: Float[Tensor, " b"],
    budget: Int[Tensor, " b"],
    live: Bool[Tensor, " b"],
    restart: int,
) -> CycleResult:
    """Run at most `restart` steps of GMRES, preconditioned on the right."""
    b, N = r.shape
    k = min(restart, N, int(budget.max()))
    eps = torch.finfo(r.dtype).eps
    size = norm(r)
    V = r.new_zeros(b, k + 1, N)
    V[:, 0] = r / torch.where(size > 0, size, 1.0)[:, None]
    R = torch.eye(k, dtype=r.dtype, device=r.device).repeat(b, 1, 1)
    g = r.new_zeros(b, k + 1)
    g[:, 0] = size
    rotations: list[tuple[Tensor, Tensor]] = []
    count, broken = torch.zeros_like(budget), torch.zeros_like(live)
    least, largest = torch.full_like(size, float("inf")), torch.zeros_like(size)
    for j in range(k):
        if _all_stopped(live, j):
            break
        v = V[:, j]
        q = matvec(v if precondition is None else precondition(v))
        count = count + live
        broken = broken | (live & ~q.isfinite().all(-1))
        live = live & ~broken
        q = torch.where(live[:, None], q, 0.0)
        length = norm(q)
        q, h = _orthogonalised(q, V[:, : j + 1])
        below = norm(q)
        V[:, j + 1] = q * _over(torch.ones_like(below), below, below > eps * length)[:, None]
        for i, (c, s) in enumerate(rotations):
            h[:, i], h[:, i + 1] = c * h[:, i] + s * h[:, i + 1], c * h[:, i + 1] - s * h[:, i]
        last = h[:, j]
        radius = torch.hypot(last, below)
        largest = torch.where(live, torch.maximum(largest, radius), largest)
        flat = live & (radius <= 4 * eps * largest)
        live = live & ~flat
        least = torch.where(flat, 0.0, torch.where(live, torch.minimum(least, radius), least))
        c = torch.where(live, _over(last, radius, live), 1.0)
        s = _over(below, radius, live)
        rotations.append((c, s))
        h[:, j] = radius
        R[:, : j + 1, j] = torch.where(live[:, None], h, R[:, : j + 1, j])
        step = torch.where(live, g[:, j], 0.0)
        g[:, j + 1] = torch.where(live, -s * step, 0.0)
        g[:, j] = c * step
        live = live & (g[:, j + 1].abs() > target) & (count < budget) & (below > eps * length)
    done = len(rotations)
    y = torch.linalg.solve_triangular(R[:, :done, :done], g[:, :done, None], upper=True)
    x = (y.mT @ V[:, :done])[:, 0]
    x = x if precondition is None else precondition(x)
    return CycleResult(x, count, torch.zeros_like(live), broken, _rcond(least, largest))
