"""Convex quadratic programs in dense batches, by Mehrotra's predictor-corrector method.

    minimise 1/2 u'Qu + q'u   subject to   A u = b,   G u <= h

Eliminating slacks and multipliers of the inequalities leaves, in every step, a positive definite matrix

    M = Q + G' diag(z / s) G,

factored once for predictor and corrector, and a Schur complement in the equalities. When the iterates are close, one
Newton step on the active rows brings the answer to rounding. Infeasible and unbounded programs are recognised by the
certificates that the diverging iterates turn into.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from tacit.problem import Status
from tacit.shapes import Bool, Float, Int, Tensor
from tacit.solvers.barrier import largest_step
from tacit.solvers.base import RUNNING, tolerance
from tacit.solvers.certificates import has_multipliers, is_infeasible
from tacit.solvers.linear import bordered, solve_or_least_norm

__all__ = ["Program", "QuadraticFound", "solve_quadratic"]


@dataclass(frozen=True)
class Program:
    """The matrices of a batch of programs; p or q may be zero."""

    Q: Float[Tensor, "b m m"]
    q: Float[Tensor, "b m"]
    A: Float[Tensor, "b p m"]
    b: Float[Tensor, "b p"]
    G: Float[Tensor, "b q m"]
    h: Float[Tensor, "b q"]

    def take(self, index: Tensor) -> Program:
        """Some of the programs."""
        return Program(*(getattr(self, k)[index] for k in _MATRICES))


_MATRICES = ("Q", "q", "A", "b", "G", "h")


@dataclass(frozen=True)
class QuadraticFound:
    """Points, multipliers (`Qu + q + A'y + G'z = 0`, `z >= 0`), slacks, residual, iterations and status."""

    u: Float[Tensor, "b m"]
    y: Float[Tensor, "b p"]
    z: Float[Tensor, "b q"]
    s: Float[Tensor, "b q"]
    residual: Float[Tensor, " b"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]


_POINT = ("u", "y", "z", "s", "residual", "iterations", "status")


@torch.no_grad()
def solve_quadratic(program: Program, tol: float | None = None, max_iter: int = 50) -> QuadraticFound:
    """Solve a batch of convex programs; an element that is not convex, or not solvable, gets a status.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> program = Program(one, -2 * one[0], one[:, :0], one[0, :, :0], one, one[0])
    >>> found = solve_quadratic(program)  # minimise u^2/2 - 2u subject to u <= 1
    >>> found.u, found.z
    (tensor([[1.]], dtype=torch.float64), tensor([[1.]], dtype=torch.float64))
    """
    tol = tolerance(tol, program.q.dtype)
    finite = torch.stack([getattr(program, k).isfinite().flatten(1).all(1) for k in _MATRICES]).all(0)
    program = Program(*(_masked(getattr(program, k), finite) for k in _MATRICES))
    everything = state = _begin(program, finite)
    index = torch.arange(len(finite), device=finite.device)
    whole = program
    for iteration in range(max_iter + 1):
        running = state.status == RUNNING
        if not bool(running.all()):
            everything = _put(everything, index, state)
            state, program, index = _take(state, running), program.take(running), index[running]
        if not len(index) or iteration == max_iter:
            break
        state = _advance(program, state, tol)
    everything = _put(everything, index, state)
    return _finished(whole, everything, tol)


def _masked(value: Tensor, finite: Bool[Tensor, " b"]) -> Tensor:
    return torch.where(finite.reshape(-1, *(1,) * (value.dim() - 1)), value, 0.0)


def _take(state: QuadraticFound, index: Tensor) -> QuadraticFound:
    return QuadraticFound(*(getattr(state, k)[index] for k in _POINT))


def _put(state: QuadraticFound, index: Tensor, other: QuadraticFound) -> QuadraticFound:
    return QuadraticFound(*(getattr(state, k).index_copy(0, index, getattr(other, k)) for k in _POINT))


@dataclass(frozen=True)
class _System:
    """M (with `weight A'A` added, which changes nothing but makes it regular) and the Schur complement, factored."""

    program: Program
    weight: Float[Tensor, "b 1"]
    L: Float[Tensor, "b m m"]
    Y: Float[Tensor, "b m p"]
    S: Float[Tensor, "b p p"]
    bad: Bool[Tensor, " b"]

    def solve(self, rd: Tensor, rp: Tensor) -> tuple[Tensor, Tensor]:
        """`du, dy` with `M du + A'dy = rd`, `A du = rp`."""
        if rp.shape[1]:
            rd = rd + self.weight * _times(self.program.A.mT, rp)
        t = torch.cholesky_solve(rd[:, :, None], self.L)
        if not rp.shape[1]:
            return t.squeeze(2), rp
        dy = torch.cholesky_solve(self.program.A @ t - rp[:, :, None], self.S)
        return (t - self.Y @ dy).squeeze(2), dy.squeeze(2)


def _factored(program: Program, w: Float[Tensor, "b q"]) -> _System:
    M = program.Q + program.G.mT @ (w[:, :, None] * program.G)
    square = program.A.mT @ program.A
    size, length = M.abs().amax((1, 2)), square.abs().amax((1, 2))
    weight = torch.where((size > 0) & (length > 0), size / length, 1.0)[:, None]
    M = M + weight[:, :, None] * square
    _raise_diagonal(M, 10 * torch.finfo(M.dtype).eps)
    L, info = torch.linalg.cholesky_ex(M)
    bad = (info != 0) | ~L.isfinite().all(-1).all(-1)
    L = torch.where(bad[:, None, None], torch.eye(M.shape[1], dtype=M.dtype, device=M.device), L)
    if not program.A.shape[1]:
        return _System(program, weight, L, program.A.mT, program.A @ program.A.mT, bad)
    Y = torch.cholesky_solve(program.A.mT, L)
    S = program.A @ Y
    _raise_diagonal(S, 100 * torch.finfo(M.dtype).eps)
    R, info = torch.linalg.cholesky_ex(S)
    bad = bad | (info != 0) | ~R.isfinite().all(-1).all(-1)
    R = torch.where(bad[:, None, None], torch.eye(S.shape[1], dtype=M.dtype, device=M.device), R)
    return _System(program, weight, L, Y, R, bad)


def _raise_diagonal(M: Float[Tensor, "b k k"], share: float) -> None:
    """Lift each diagonal entry by a share of itself: dependent rows and level directions then factor; empty ones too."""
    diagonal = M.diagonal(dim1=1, dim2=2)
    lift = share * torch.maximum(diagonal.abs(), share * diagonal.abs().amax(1, keepdim=True))
    diagonal.add_(torch.where(diagonal == 0, torch.where(lift > 0, lift / share**2, 1.0), lift))


def _begin(program: Program, finite: Bool[Tensor, " b"]) -> QuadraticFound:
    """Mehrotra's start: the least-squares point, with slacks and multipliers pushed to be positive."""
    system = _factored(program, torch.ones_like(program.h))
    u, y = system.solve(-program.q + (program.h[:, None, :] @ program.G).squeeze(1), program.b)
    slack = program.h - (program.G @ u[:, :, None]).squeeze(2)
    push_s, push_z = _positive(slack), _positive(-slack)
    status = torch.where(finite, RUNNING, int(Status.NONFINITE))
    return QuadraticFound(
        u, y, push_z, push_s, torch.full_like(u[:, 0], float("inf")), torch.zeros_like(status), status
    )


def _positive(v: Float[Tensor, "b q"]) -> Float[Tensor, "b q"]:
    if not v.shape[1]:
        return v
    least = v.amin(1, keepdim=True)
    return torch.where(least > 1e-8, v, v + 1.0 - least)


def _advance(program: Program, at: QuadraticFound, tol: float) -> QuadraticFound:
    q = at.s.shape[1]
    rd = -(_times(program.Q, at.u) + program.q + _times(program.A.mT, at.y) + _times(program.G.mT, at.z))
    rp = program.b - _times(program.A, at.u)
    rg = program.h - at.s - _times(program.G, at.u)
    mu = (at.s * at.z).sum(1) / max(q, 1)
    system = _factored(program, at.z / at.s)

    def direction(rc: Float[Tensor, "b q"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        # rc: the wanted change of s z. ds = rg - G du, dz = (rc - z ds) / s.
        du, dy = system.solve(rd - _times(program.G.mT, (rc - at.z * rg) / at.s), rp)
        ds = rg - _times(program.G, du)
        return du, dy, (rc - at.z * ds) / at.s, ds

    one = torch.ones_like(mu)
    du, dy, dz, ds = direction(-at.s * at.z)
    if q:
        alpha = torch.minimum(largest_step(at.s, ds, one), largest_step(at.z, dz, one))[:, None]
        ahead = ((at.s + alpha * ds) * (at.z + alpha * dz)).sum(1) / q
        sigma = (ahead / mu).clamp(max=1.0).pow(3)
        du, dy, dz, ds = direction((sigma * mu)[:, None] - at.s * at.z - ds * dz)
    tau = 0.995 * one
    alpha = torch.minimum(largest_step(at.s, ds, tau), largest_step(at.z, dz, tau))[:, None]
    new = replace(at, u=at.u + alpha * du, y=at.y + alpha * dy, z=at.z + alpha * dz, s=at.s + alpha * ds)
    error = _error(program, new)
    status = torch.where(error <= tol, int(Status.CONVERGED), at.status)
    status = torch.where((status == RUNNING) & _proves_infeasible(program, new), int(Status.INFEASIBLE), status)
    status = torch.where((status == RUNNING) & _proves_unbounded(program, new), int(Status.UNBOUNDED), status)
    # Close to the answer the factors lose digits: what gains no more is left to the last step on the active rows.
    spent = (at.residual <= 1e-6) & (error > 0.5 * at.residual) & (error > tol)
    broken = system.bad | ~error.isfinite() | spent
    status = torch.where(broken & (status == RUNNING), int(Status.STALLED), status)
    keep = broken[:, None]
    return QuadraticFound(
        torch.where(keep, at.u, new.u),
        torch.where(keep, at.y, new.y),
        torch.where(keep, at.z, new.z),
        torch.where(keep, at.s, new.s),
        torch.where(broken, at.residual, error),
        at.iterations + 1,
        status,
    )


def _times(M: Float[Tensor, "b k n"], v: Float[Tensor, "b n"]) -> Float[Tensor, "b k"]:
    return (M @ v[:, :, None]).squeeze(2)


def _largest(*vectors: Tensor) -> Float[Tensor, " b"]:
    return torch.cat(vectors, 1).abs().amax(1)


def _error(program: Program, at: QuadraticFound) -> Float[Tensor, " b"]:
    """The largest residual of the optimality conditions, each relative to the terms that cancel in it."""
    Qu, Ay, Gz = _times(program.Q, at.u), _times(program.A.mT, at.y), _times(program.G.mT, at.z)
    # At u = 0 with no active row every term vanishes; what is nothing beside Q then counts as nothing.
    floor = torch.finfo(Qu.dtype).eps * program.Q.abs().amax(-1).amax(-1)
    pull = _largest(Qu, program.q, Ay, Gz).clamp(min=torch.finfo(Qu.dtype).tiny).maximum(floor)
    dual = _largest(Qu + program.q + Ay + Gz) / pull
    if not program.A.shape[1] + program.G.shape[1]:
        return dual
    Au, Gu = _times(program.A, at.u), _times(program.G, at.u)
    size = _largest(Au, program.b, Gu, program.h).clamp(min=torch.finfo(Qu.dtype).tiny)
    primal = torch.cat([(Au - program.b).abs(), (Gu - program.h).clamp(min=0.0)], 1).amax(1) / size
    gap = (at.s * at.z).sum(1) / (pull * at.u.abs().amax(1).clamp(min=1.0))
    return torch.maximum(torch.maximum(dual, primal), gap)


def _proves_infeasible(program: Program, at: QuadraticFound) -> Bool[Tensor, " b"]:
    """Farkas: A'y + G'z = 0, z >= 0 and b'y + h'z < 0 leave no u."""
    if not program.A.shape[1] + program.G.shape[1]:
        return torch.zeros_like(at.status, dtype=torch.bool)
    weight = (program.b * at.y).sum(1) + (program.h * at.z).sum(1)
    rows = torch.cat([program.A, program.G], 1).abs().amax(-1)
    mass = (torch.cat([at.y.abs(), at.z], 1) * rows).sum(1)
    left = _largest(_times(program.A.mT, at.y) + _times(program.G.mT, at.z))
    return (left <= 1e-8 * mass) & (weight < -1e-6 * mass)


def _proves_unbounded(program: Program, at: QuadraticFound) -> Bool[Tensor, " b"]:
    """A ray: Q d = 0, A d = 0, G d <= 0 and q'd < 0 along d = u / |u|, with u far off."""
    size = at.u.abs().amax(1)
    d = at.u / size.clamp(min=1.0)[:, None]
    cost = (program.q * d).sum(1)
    flat = _largest(_times(program.Q, d)) <= 1e-8 * program.Q.abs().amax(-1).amax(-1).clamp(min=1e-300)
    rows = torch.cat([_times(program.A, d).abs(), _times(program.G, d)], 1)
    inside = (rows <= 1e-8).all(1)
    return (size > 1e6) & flat & inside & (cost < -1e-6 * program.q.abs().amax(1))


def _finished(program: Program, found: QuadraticFound, tol: float) -> QuadraticFound:
    """Solve for the active rows exactly where that is better, and settle what is still open."""
    status = torch.where(found.status == RUNNING, int(Status.MAX_ITERATIONS), found.status)
    exact = 8 * torch.finfo(found.u.dtype).eps
    near = found.residual <= 1e-3
    if not program.G.shape[1] and not bool(near.all()):  # one linear system is the whole problem, if it is convex
        curvature = torch.linalg.eigvalsh(program.Q)
        convex = curvature[:, 0] >= -100 * tol * curvature.abs().amax(1)
        near = near | (convex & (status != Status.NONFINITE))
    index = near.nonzero().squeeze(1)
    active = found.z[index] > found.s[index]
    for _ in range(8):
        if not len(index):
            break
        part, best = program.take(index), _take(found, index)
        new, wanted = _on_active_rows(part, best, active)
        better = new.residual < best.residual
        found = _put(found, index[better], _take(new, better))
        # Rows whose multiplier came out negative leave, rows that are violated enter; then again.
        again = (wanted != active).any(1) & (torch.minimum(new.residual, best.residual) > exact)
        index, active = index[again], wanted[again]
    status = torch.where((found.residual <= tol) & (status != Status.NONFINITE), int(Status.CONVERGED), status)
    return replace(found, status=_verdicts(program, status))


def _verdicts(program: Program, status: Int[Tensor, " b"]) -> Int[Tensor, " b"]:
    """What iterates only hinted at, settled: without an answer there may be no feasible point, or no least value."""
    index = ((status != Status.CONVERGED) & (status != Status.NONFINITE)).nonzero().squeeze(1)
    if not len(index):
        return status
    part, settled = program.take(index), status[index]
    bottomless = ~has_multipliers(part.Q, part.q, part.A, part.G)
    settled = torch.where(bottomless & (settled != Status.INFEASIBLE), int(Status.UNBOUNDED), settled)
    settled = torch.where(is_infeasible(part.A, part.b, part.G, part.h), int(Status.INFEASIBLE), settled)
    return status.index_copy(0, index, settled)


def _on_active_rows(
    program: Program, at: QuadraticFound, active: Bool[Tensor, "b q"]
) -> tuple[QuadraticFound, Bool[Tensor, "b q"]]:
    """Newton's step on the conditions with these rows active, and the rows that look active after it."""
    p, m = program.A.shape[1:]
    rows = torch.cat([program.A, torch.where(active[:, :, None], program.G, 0.0)], 1)
    corner = torch.cat([torch.zeros_like(at.y), (~active).to(at.z.dtype)], 1)
    z = torch.where(active, at.z, 0.0)
    dual = _times(program.Q, at.u) + program.q + _times(program.A.mT, at.y) + _times(program.G.mT, z)
    gap = _times(program.G, at.u) - program.h
    primal = torch.cat([_times(program.A, at.u) - program.b, torch.where(active, gap, 0.0)], 1)
    w = solve_or_least_norm(bordered(program.Q, rows, corner), -torch.cat([dual, primal], 1))
    u, y = at.u + w[:, :m], at.y + w[:, m : m + p]
    z, slack = torch.where(active, z + w[:, m + p :], 0.0), program.h - _times(program.G, u)
    wanted = torch.where(active, z > 0, slack < 0)
    new = replace(at, u=u, y=y, z=z.clamp(min=0.0), s=torch.where(active, 0.0, slack).clamp(min=0.0))
    return replace(new, residual=_error(program, new).nan_to_num(nan=float("inf"))), wanted
