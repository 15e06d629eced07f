"""A primal-dual interior point with a filter line search, for any smooth problem, convex or not.

Inequalities get slacks, `g + s = 0, s > 0`, and the barrier problems `min f - mu sum log s` are solved for falling mu
(A. Waechter and L. T. Biegler, On the implementation of an interior-point filter line-search algorithm, 2006). Steps
must reduce the violation or the barrier function, and never both less than a filter of past points remembers. Where
no step does, the violation alone is reduced. The end game is Newton's on the active rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from tacit.problem import Instance, Status
from tacit.shapes import Bool, Float, Tensor
from tacit.solvers.barrier import Model, barrier_errors, new_direction
from tacit.solvers.base import RUNNING, Found, Progress, Solver, check_count, check_positive, drive, tolerance
from tacit.solvers.filter import MEMORY, InteriorState, cleared, model_at, search
from tacit.solvers.linear import bordered, solve_or_least_norm
from tacit.solvers.polish import STEPS, polish
from tacit.solvers.restoration import restore, row_scale
from tacit.solvers.stray import without_strays

__all__ = ["InteriorPoint"]

FAR = 1e12
PATIENCE = 100
"""Steps without a halving of the error before a search is given up."""

RESTORATIONS = 8
"""How often one search may fall back on reducing the violation alone."""


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """Primal-dual interior point for equality and inequality constraints, non-convex problems included.

    Args:
        tol: scaled residual to reach; None takes what the dtype allows.
        max_iter: steps allowed, those that restore feasibility or polish an answer among them.
        barrier: first weight of the logarithmic barrier.
        callback: called with a `Progress` after every step.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> ball = Problem(
    ...     objective=lambda x, u: 0.5 * (u - x).square().sum(),
    ...     inequality=lambda x, u: u.square().sum()[None] - 1,
    ... )
    >>> x = torch.tensor([[3.0, 4.0], [0.1, 0.2]])
    >>> found = InteriorPoint().solve(Instance.bind(ball, (x,), (0,), x), x)
    >>> found.u, found.lam
    (tensor([[0.6000, 0.8000],
            [0.1000, 0.2000]]), tensor([[-2.],
            [ 0.]]))
    """

    tol: float | None = None
    max_iter: int = 200
    barrier: float = 0.1
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        check_positive(self, "barrier")
        check_count(self, "max_iter")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        state = self.begin(instance, start)
        final, _ = drive(instance, state, self.advance, self.max_iter, self.callback)
        found = _last_look(instance, final, self.max_iter, tolerance(self.tol, start.dtype))
        return without_strays(instance, start, found)

    def begin(self, instance: Instance, start: Float[Tensor, "b m"]) -> InteriorState:
        """Scales, slacks and multipliers at the start."""
        u = start.clone()
        f, f_Y = instance.objective_and_gradient(u)
        rows, A = instance.rows(u), instance.jacobian(u)
        d = row_scale(rows, A, u)
        steep = torch.maximum(f_Y.abs().amax(-1), instance.hessian(u).abs().amax(-1).amax(-1))
        sigma = torch.where(steep > 100.0, 100.0 / steep, (1.0 / steep.clamp(min=1e-14)).clamp(min=1.0))
        sigma = torch.where(steep > 0, sigma, 1.0).nan_to_num(nan=1.0)
        finite = f.isfinite() & f_Y.isfinite().all(-1) & rows.isfinite().all(-1) & A.isfinite().all(-1).all(-1)
        blank = torch.zeros_like(f)
        state = InteriorState(
            u=u,
            residual=torch.full_like(f, float("inf")),
            status=torch.where(finite, RUNNING, int(Status.NONFINITE)),
            lam=torch.zeros_like(rows),
            sigma=sigma,
            d=d,
            s=rows[:, instance.p :],
            y=rows[:, : instance.p],
            z=rows[:, instance.p :],
            mu=torch.full_like(f, self.barrier),
            delta=blank,
            filter=f.new_full((len(f), MEMORY, 2), float("inf")),
            entries=torch.zeros_like(f, dtype=torch.int64),
            ceiling=blank,
            floor=blank,
            first=sigma * f,
            restorations=torch.zeros_like(f, dtype=torch.int64),
            polished=torch.full_like(f, float("inf")),
            crawl=torch.zeros_like(f, dtype=torch.int64),
            best=torch.full_like(f, float("inf")),
            since=torch.zeros_like(f, dtype=torch.int64),
            left=torch.full_like(f, self.max_iter, dtype=torch.int64),
        )
        return _reset(instance, state, rows, f_Y, A)

    def advance(self, instance: Instance, state: InteriorState) -> InteriorState:
        """One step of every element."""
        tol = tolerance(self.tol, state.u.dtype)
        state = replace(state, left=state.left - 1)
        model, f = model_at(instance, state)
        error = barrier_errors(model, torch.zeros_like(state.mu))
        state = replace(state, lam=state.multipliers, residual=error.nan_to_num(nan=float("inf")))
        state = _watch(instance, _finish(instance, state, model, f, error, tol), error)
        state = _lower_barrier(state, model, tol)
        direction = new_direction(model, state.mu, state.delta)
        moved, lost = search(instance, state, model, f, direction)
        moved = moved.where(state.status == RUNNING, state)
        moved = _restore(instance, moved, lost & (state.status == RUNNING), tol)
        # The last look's steps are kept back.
        spent = (moved.status == RUNNING) & (moved.left <= min(STEPS, self.max_iter // 4))
        return replace(moved, status=torch.where(spent, int(Status.MAX_ITERATIONS), moved.status))


def _reset(
    instance: Instance, state: InteriorState, rows: Float[Tensor, "b r"], f_Y: Tensor, A: Float[Tensor, "b r m"]
) -> InteriorState:
    """Slacks off their bounds, multipliers by least squares, an empty filter."""
    p, m = instance.p, instance.m
    c = state.d * rows
    s = torch.maximum(-c[:, p:], state.mu[:, None].clamp(max=1e-2))
    z = (state.mu[:, None] / s).clamp(1e-6, 1.0)
    A = state.d[:, :, None] * A
    pull = state.sigma[:, None] * f_Y + (z[:, None, :] @ A[:, p:]).squeeze(1)
    eye = torch.eye(m, dtype=A.dtype, device=A.device).expand(len(A), m, m)
    K = bordered(eye, A[:, :p], torch.zeros_like(rows[:, :p]))
    y = solve_or_least_norm(K, torch.cat([-pull, torch.zeros_like(rows[:, :p])], 1))[:, m:]
    y = torch.where(y.abs().amax(1, keepdim=True) <= 1e3, y, 0.0) if p else y
    violation = torch.cat([c[:, :p], c[:, p:] + s], 1).abs().sum(1)
    return replace(
        cleared(replace(state, s=s, z=z, y=y)),
        ceiling=1e4 * violation.clamp(min=1.0),
        floor=1e-4 * violation.clamp(min=1.0),
    )


def _finish(
    instance: Instance, state: InteriorState, at: Model, f: Float[Tensor, " b"], error: Float[Tensor, " b"], tol: float
) -> InteriorState:
    """Polish what is close, and give a status to what is done."""
    close = (error <= 1e-5) & (error <= 1e-2 * state.polished)
    if bool(close.any()):
        index = close.nonzero().squeeze(1)
        near = state.take(index)
        best = polish(instance.take(index), near.u, near.lam, left=near.left)
        good = best.holds(tol)
        ended = replace(
            near,
            polished=error[index],
            left=near.left - best.taken,
            u=torch.where(good[:, None], best.u, near.u),
            lam=torch.where(good[:, None], best.lam, near.lam),
            residual=torch.where(good, best.residual, near.residual),
            status=torch.where(good, int(Status.CONVERGED), near.status),
        )
        # Stationary without being a minimum: nothing here will ever move it.
        trapped = ~good & ~best.minimum & (best.residual <= tol) & (error[index] <= tol)
        ended = replace(ended, status=torch.where(trapped, int(Status.STALLED), ended.status))
        state = state.put(index, ended)
    # Falling without end is unbounded; running off while the objective hardly falls is being lost.
    size, fall = state.u.abs().amax(-1), (state.first - f) / (1 + state.first.abs())
    feasible = at.primal.abs().sum(1) <= 1e-6 * size.clamp(min=1.0)
    far = (size > FAR) | (fall > FAR)
    unbounded = far & (fall > 10.0) & feasible & instance.has_objective
    status = torch.where(far & ~unbounded & (size > FAR), int(Status.STALLED), state.status)
    state = replace(state, status=torch.where(unbounded, int(Status.UNBOUNDED), status))
    broken = ~error.isfinite()
    return replace(state, status=torch.where(broken, int(Status.NONFINITE), state.status))


def _watch(instance: Instance, state: InteriorState, error: Float[Tensor, " b"]) -> InteriorState:
    """Give up on a constrained search whose error has not halved for long: it has no multipliers to converge to."""
    better = error <= 0.5 * state.best
    best, since = torch.where(better, error, state.best), torch.where(better, 0, state.since + 1)
    worn = (since > PATIENCE) & (state.status == RUNNING) & (instance.r > 0)
    return replace(state, best=best, since=since, status=torch.where(worn, int(Status.STALLED), state.status))


def _last_look(instance: Instance, final: InteriorState, max_iter: int, tol: float) -> Found:
    """Polish what did not converge: it may hold all the same. Residuals are those of the problem, not of a barrier."""
    open_ends = torch.tensor([Status.MAX_ITERATIONS, Status.STALLED], device=final.u.device)
    index = torch.isin(final.status, open_ends).nonzero().squeeze(1)
    found = Found(final.u, final.lam, final.residual, max_iter - final.left, final.status)
    if not len(index):
        return found
    part = final.take(index)
    best = polish(instance.take(index), part.u, part.lam, left=part.left)
    good = best.holds(tol)
    status = torch.where(good, int(Status.CONVERGED), part.status)
    u = torch.where(best.residual.isfinite()[:, None], best.u, part.u)
    return found.replaced_at(index, Found(u, best.lam, best.residual, max_iter - part.left + best.taken, status))


def _lower_barrier(state: InteriorState, at: Model, tol: float) -> InteriorState:
    """Solve the present barrier problem to ten times its weight, then take the next."""
    least = tol / 10.0
    for _ in range(4):
        solved = (barrier_errors(at, state.mu) <= 10.0 * state.mu) & (state.mu > least)
        if not bool(solved.any()):
            break
        lower = torch.minimum(0.2 * state.mu, state.mu.pow(1.5)).clamp(min=least)
        state = cleared(state).where(solved, state)
        state = replace(state, mu=torch.where(solved, lower, state.mu))
    return state


def _restore(instance: Instance, state: InteriorState, lost: Bool[Tensor, " b"], tol: float) -> InteriorState:
    """Where no step was acceptable: reduce the violation alone and begin again from there."""
    if not bool(lost.any()):
        return state
    if not instance.r:
        return replace(state, status=torch.where(lost, int(Status.STALLED), state.status))
    index = lost.nonzero().squeeze(1)
    part, inner = state.take(index), instance.take(index)
    rows = inner.rows(part.u) * part.d
    violation = torch.cat([rows[:, : inner.p].abs(), rows[:, inner.p :].clamp(min=0.0)], 1).amax(1)
    found = restore(inner, part.u, 0.1 * violation, tol, part.left.clamp(max=100))
    again = replace(part, u=found.u, left=part.left - found.iterations)
    again = replace(again, restorations=part.restorations + 1, delta=torch.zeros_like(part.delta))
    again = replace(again, mu=torch.where(violation > part.mu, part.mu.clamp(min=1e-2), part.mu))
    again = _reset(inner, again, inner.rows(found.u), inner.gradient(found.u), inner.jacobian(found.u))
    status = torch.where(found.status == Status.INFEASIBLE, int(Status.INFEASIBLE), part.status)
    worn = again.restorations > RESTORATIONS
    status = torch.where(worn & (status == RUNNING), int(Status.STALLED), status)
    return state.put(index, replace(again, status=status))
