"""Brings a point to where the constraints hold, moving little: Gauss-Newton in a trust region on the violation.

    minimise 1/2 |v(u)|^2,    v = D [h; max(g, 0)],    D scales each row by its first slope.

Steps have least norm, so a start that is feasible stays, and one that is not goes about to the nearest feasible point.
A point where the violation is stationary and positive says that the problem has no feasible point near.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from tacit.problem import Instance, Problem, Status
from tacit.shapes import Float, Int, Tensor
from tacit.solvers.base import RUNNING, State, drive, tolerance
from tacit.solvers.newton import Newton, trust_region_step

__all__ = ["Restored", "restore", "row_scale"]


@dataclass(frozen=True)
class Restored:
    """Where the violation is small, its largest scaled entry, and CONVERGED, INFEASIBLE or another status."""

    u: Float[Tensor, "b m"]
    violation: Float[Tensor, " b"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]


@dataclass(frozen=True)
class _State(State):
    """Adds: trust radius, row scales, target violation."""

    radius: Float[Tensor, " b"]
    scale: Float[Tensor, "b r"]
    target: Float[Tensor, " b"]


def row_scale(rows: Float[Tensor, "b r"], A: Float[Tensor, "b r m"], u: Float[Tensor, "b m"]) -> Float[Tensor, "b r"]:
    """Factors that bring the slopes of the rows into [0.01, 100].

    A row can be level at one point without being small: its value over the size of u counts as a slope too.
    """
    slope = torch.maximum(A.abs().amax(-1), rows.abs() / u.abs().amax(-1, keepdim=True).clamp(min=1.0))
    up = (1e-2 / slope.clamp(min=1e-12)).clamp(min=1.0)
    scale = torch.where(slope > 100.0, 100.0 / slope, up)
    return torch.where(slope > 0, scale, 1.0).nan_to_num(nan=1.0, posinf=1.0)


@torch.no_grad()
def restore(
    instance: Instance,
    u: Float[Tensor, "b m"],
    target: Float[Tensor, " b"] | None = None,
    tol: float | None = None,
    max_iter: int | Int[Tensor, " b"] = 100,
    judge: bool = True,
) -> Restored:
    """Reduce the violation to `target` (absolute, scaled rows), or to the tolerance without one.

    With `judge`, points where Gauss-Newton stops at a positive violation are followed along negative curvature before
    they are called INFEASIBLE. `max_iter` bounds all steps, for all elements or for each.
    """
    tol = tolerance(tol, u.dtype)
    rows = instance.rows(u)
    bad = ~(u.isfinite().all(-1) & rows.isfinite().all(-1))
    state = _State(
        u=u.clone(),
        residual=u.new_full((len(u),), float("inf")),
        status=torch.where(bad, int(Status.NONFINITE), RUNNING),
        radius=u.abs().amax(-1).clamp(min=1.0),
        scale=row_scale(rows, instance.jacobian(u), u),
        target=u.new_zeros(len(u)) if target is None else target,
    )
    final, iterations = drive(instance, state, lambda i, s: _advance(i, s, tol), max_iter)
    stuck = (final.status == Status.INFEASIBLE).nonzero().squeeze(1)
    if judge and len(stuck):
        left = (max_iter - iterations)[stuck].clamp(0, 100)
        part, steps = _escape(instance.take(stuck), final.take(stuck), left, tol)
        final, iterations = final.put(stuck, part), iterations.index_add(0, stuck, steps)
    return Restored(final.u, final.residual, iterations, final.status)


def _violation(rows: Float[Tensor, "b r"], p: int, scale: Float[Tensor, "b r"]) -> Float[Tensor, "b r"]:
    return scale * torch.cat([rows[:, :p], rows[:, p:].clamp(min=0.0)], 1)


def _advance(instance: Instance, state: _State, tol: float) -> _State:
    p, eps = instance.p, torch.finfo(state.u.dtype).eps
    rows, A = instance.rows(state.u), instance.jacobian(state.u)
    v = _violation(rows, p, state.scale)
    violated = torch.cat([torch.ones_like(rows[:, :p], dtype=torch.bool), rows[:, p:] > 0], 1)
    J = torch.where(violated[:, :, None], state.scale[:, :, None] * A, 0.0)
    finite = J.isfinite().all(-1).all(-1) & v.isfinite().all(-1)
    J, v = torch.where(finite[:, None, None], J, 0.0), torch.where(finite[:, None], v, 0.0)
    _, s, Vt = torch.linalg.svd(J, full_matrices=False)
    w, V = s.flip(-1).square(), Vt.flip(-2).mT
    pull = (J.mT @ v[:, :, None]).squeeze(-1)
    d, predicted = trust_region_step(w, V, pull, state.radius)
    trial = state.u + d
    v_trial = _violation(instance.rows(trial), p, state.scale)
    now, then = v.norm(dim=-1), v_trial.norm(dim=-1)
    ratio = 0.5 * (now.square() - then.square()) / predicted.clamp(min=torch.finfo(now.dtype).tiny)
    ratio = torch.where(then.isfinite(), ratio, -1.0)
    accept = (ratio > 1e-4) & (then < now)
    length = d.norm(dim=-1)
    radius = torch.where(ratio < 0.25, 0.25 * length, state.radius)
    radius = torch.where((ratio > 0.75) & (length > 0.9 * state.radius), 2.0 * state.radius, radius)
    size = state.u.abs().amax(-1).clamp(min=1.0)
    largest = v.abs().amax(-1)
    feasible = v.abs() <= tol * J.abs().amax(-1) * size[:, None]
    reached = (largest <= state.target) | (feasible.all(-1) & ~accept) | (largest == 0)
    reached |= feasible.all(-1) & (largest <= 8 * eps)
    flat = pull.abs().amax(-1) <= 1e-9 * J.abs().amax(-1).amax(-1) * now
    stuck = ~accept & (length <= 10 * eps * size)
    status = torch.where(flat | stuck, int(Status.INFEASIBLE), state.status)
    status = torch.where(feasible.all(-1) & stuck, int(Status.CONVERGED), status)
    status = torch.where(reached, int(Status.CONVERGED), status)
    status = torch.where(finite, status, int(Status.NONFINITE))
    move = accept & (status == RUNNING)
    return replace(
        state,
        u=torch.where(move[:, None], trial, state.u),
        residual=torch.where(finite, largest, float("inf")),
        status=status,
        radius=radius,
    )


def _escape(instance: Instance, state: _State, left: Int[Tensor, " b"], tol: float) -> tuple[_State, Int[Tensor, " b"]]:
    """Follow negative curvature of the violation; what is a minimum of it stays INFEASIBLE."""
    p = instance.p

    def violation(scale: Tensor, *xs_and_u: Tensor) -> Tensor:
        rows = instance.sample_rows(xs_and_u[-1], *xs_and_u[:-1])
        return 0.5 * (scale * torch.cat([rows[:p], rows[p:].clamp(min=0.0)])).square().sum()

    flat = replace(
        instance,
        problem=Problem(objective=violation),
        values=(state.scale, *instance.values),
        in_dims=(0, *instance.in_dims),
        shape=torch.Size([instance.m]),
        p=0,
        q=0,
    )
    newton = Newton()
    moved, steps = drive(flat, newton.begin(flat, state.u), newton.advance, left)
    v = _violation(instance.rows(moved.u), p, state.scale).abs().amax(-1)
    better = v < 0.5 * state.residual
    u = torch.where(better[:, None], moved.u, state.u)
    largest = torch.where(better, v, state.residual)
    good = largest <= torch.maximum(tol * u.abs().amax(-1).clamp(min=1.0), state.target)
    status = torch.where(good, int(Status.CONVERGED), int(Status.INFEASIBLE))
    return replace(state, u=u, residual=largest, status=status), steps
