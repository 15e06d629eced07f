"""Newton's method in a trust region, for problems without constraints.

Each step minimises the quadratic model within a ball, exactly: with `H = V diag(w) V'`,

    d(sigma) = -V (w + sigma)^-1 V' f_Y,    |d| <= radius,    sigma >= max(0, -w_min).

Directions of negative curvature are followed out of saddles. Once the conditions hold the steps go on until rounding
stops them, so that the answer is exact to its precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from tacit.errors import SolverError
from tacit.problem import Instance, Status
from tacit.shapes import Bool, Float, Int, Tensor
from tacit.solvers.base import RUNNING, Found, Progress, Solver, State, check_count, check_positive, drive, tolerance
from tacit.solvers.level import lower_beside
from tacit.solvers.linear import eigen, solve_or_least_norm
from tacit.solvers.optimality import Local, residual
from tacit.solvers.polish import hardly_moves, polish, relative_length
from tacit.solvers.stray import without_strays

__all__ = ["Newton", "trust_region_step"]

FAR = 1e12
"""An unknown (relative to its start) or a decrease (relative to the first value) that counts as without bound."""


@dataclass(frozen=True)
class Newton(Solver):
    """Trust-region Newton for unconstrained problems, non-convex ones included.

    Args:
        tol: scaled residual to reach; None takes what the dtype allows.
        max_iter: steps allowed.
        radius: first trust region, relative to max(1, |start|).
        scaled: measure the trust region in units of the unknowns, taken from the Hessian's diagonal.
        callback: called with a `Progress` after every step.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> problem = Problem(objective=lambda x, u: (u - x).pow(4).sum() + (u - x).square().sum())
    >>> x = torch.tensor([[1.0, 2.0]])
    >>> Newton().solve(Instance.bind(problem, (x,), (0,), torch.zeros(1, 2)), torch.zeros(1, 2)).u
    tensor([[1., 2.]])
    """

    tol: float | None = None
    max_iter: int = 500
    radius: float = 1.0
    scaled: bool = False
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        check_positive(self, "radius")
        check_count(self, "max_iter")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        if instance.r:
            raise SolverError(
                f"Newton expects a problem without constraints; received one with {instance.p} equality and "
                f"{instance.q} inequality rows. Use InteriorPoint, or leave the solver to be chosen."
            )
        blank = torch.zeros(len(start), dtype=torch.int64, device=start.device)
        found = self._search(instance, start, blank, self.callback)
        index, beside = _inflections(instance, found)
        if len(index):  # go on from where the objective is lower, once
            again = self._search(instance.take(index), beside, found.iterations[index], None)
            found = found.replaced_at(index, again)
            index, _ = _inflections(instance, found)
            found = replace(found, status=found.status.index_fill(0, index, int(Status.STALLED)))
        return without_strays(instance, start, found)

    def _search(
        self,
        instance: Instance,
        start: Float[Tensor, "b m"],
        taken: Int[Tensor, " b"],
        callback: Callable[[Progress], None] | None,
    ) -> Found:
        """From `start`, some steps having been taken before."""
        state = self.begin(instance, start)
        final, steps = drive(instance, state, self.advance, self.max_iter - taken, callback)
        found = Found(final.u, start.new_zeros(len(start), 0), final.residual, taken + steps, final.status)
        return self._last_look(instance, found)

    def _last_look(self, instance: Instance, found: Found) -> Found:
        """A search that used up its steps, or can improve no more, has still converged if the conditions hold."""
        open_ends = torch.tensor([Status.MAX_ITERATIONS, Status.STALLED], device=found.u.device)
        index = torch.isin(found.status, open_ends).nonzero().squeeze(1)
        if not len(index):
            return found
        part, u, taken = instance.take(index), found.u[index], found.iterations[index]
        best = polish(part, u, u.new_zeros(len(u), 0), left=self.max_iter - taken)
        good = best.holds(tolerance(self.tol, u.dtype))
        status = torch.where(good, int(Status.CONVERGED), found.status[index])
        u = torch.where(best.residual.isfinite()[:, None], best.u, u)
        return found.replaced_at(index, Found(u, best.lam, best.residual, taken + best.taken, status))

    def step(self, instance: Instance, u: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
        """One plain Newton step, differentiable: for unrolling close to the answer."""
        d, _ = torch.linalg.solve_ex(instance.hessian(u), instance.gradient(u)[:, :, None])
        return u - d.squeeze(2)

    def begin(self, instance: Instance, start: Float[Tensor, "b m"]) -> NewtonState:
        """The state before the first step."""
        f = instance.objective(start)
        size = start.abs().amax(-1).clamp(min=1.0)
        bad = ~(f.isfinite() & start.isfinite().all(-1))
        status = torch.where(bad, int(Status.NONFINITE), RUNNING)
        return NewtonState(
            u=start.clone(),
            residual=torch.full_like(f, float("inf")),
            status=status,
            f=f,
            first=f,
            units=torch.zeros_like(start),
            radius=torch.zeros_like(f),
            farthest=FAR * size,
            lull=torch.zeros_like(status),
        )

    def advance(self, instance: Instance, state: NewtonState) -> NewtonState:
        """One step of every element."""
        tol = tolerance(self.tol, state.u.dtype)
        eps = torch.finfo(state.u.dtype).eps
        f, f_Y = instance.objective_and_gradient(state.u)
        H = instance.hessian(state.u)
        error = _residual(state.u, f, f_Y, H)
        # The ball is round where the Hessian's diagonal is one: units of the unknowns do not matter.
        D = torch.maximum(state.units, H.diagonal(dim1=1, dim2=2).abs().sqrt().nan_to_num(nan=0.0, posinf=0.0))
        unit = D.clamp(min=1e-8 * D.amax(-1, keepdim=True)).clamp(min=torch.finfo(D.dtype).tiny ** 0.25)
        unit = unit if self.scaled else torch.ones_like(unit)
        size = state.u.abs().amax(-1).clamp(min=1.0)
        radius = torch.where(state.radius > 0, state.radius, self.radius * size * unit.amax(-1))
        w, V = eigen(H / (unit[:, :, None] * unit[:, None, :]))
        d, predicted = trust_region_step(w, V, f_Y / unit, radius)
        length = d.norm(dim=-1)
        d = d / unit
        trial = state.u + d
        f_trial, g_trial = instance.objective_and_gradient(trial)
        actual = f - f_trial
        # Differences of f below its rounding say nothing: there the gradient decides.
        blind = predicted <= 100 * eps * torch.maximum(f.abs(), f_trial.abs())
        shrinks = g_trial.abs().amax(-1) < f_Y.abs().amax(-1)
        ratio = torch.where(blind, shrinks.to(f.dtype), actual / predicted)
        ratio = torch.where(f_trial.isfinite() & g_trial.isfinite().all(-1), ratio, -1.0)
        accept = ratio > 1e-4
        wider = torch.where((ratio > 0.75) & (length > 0.9 * radius), 2.0 * radius, radius)
        radius = torch.where(ratio < 0.25, 0.25 * length, wider)
        least = w[:, 0] / w.abs().amax(-1).clamp(min=torch.finfo(w.dtype).tiny)
        close = _is_close(H, f_Y, state.u, error, tol)
        status, lull = self._judge(state, error, least, accept, d.abs().amax(-1), close, tol)
        fall = (state.first - f_trial) / (1 + state.first.abs())
        far = accept & ((trial.abs().amax(-1) > state.farthest) | (fall > FAR))
        status = torch.where(far, torch.where(fall > 10.0, int(Status.UNBOUNDED), int(Status.STALLED)), status)
        status = torch.where(f.isfinite() & error.isfinite(), status, int(Status.NONFINITE))
        # A finished element keeps the point that its residual was measured at.
        move = accept & (status == RUNNING)
        return replace(
            state,
            u=torch.where(move[:, None], trial, state.u),
            f=torch.where(move, f_trial, f),
            residual=error,
            status=status,
            units=D,
            radius=radius,
            lull=lull,
        )

    def _judge(
        self,
        state: NewtonState,
        error: Float[Tensor, " b"],
        least: Float[Tensor, " b"],
        accept: Bool[Tensor, " b"],
        length: Float[Tensor, " b"],
        close: Bool[Tensor, " b"],
        tol: float,
    ) -> tuple[Int[Tensor, " b"], Int[Tensor, " b"]]:
        """Who is done: converged and no longer improving, or unable to move."""
        eps = torch.finfo(error.dtype).eps
        size = state.u.abs().amax(-1).clamp(min=1.0)
        minimum = least >= -1e-6
        good = (error <= tol) & minimum & close
        lull = torch.where(good & (error > 0.7 * state.residual), state.lull + 1, state.lull)
        exact = error <= 4 * eps
        done = good & (exact | (lull >= 2) | ~accept | (length <= 2 * eps * state.u.abs().amax(-1)))
        stuck = ~accept & (length <= 0.1 * eps * size)
        status = torch.where(done, int(Status.CONVERGED), state.status)
        return torch.where(stuck & ~done, int(Status.STALLED), status), lull


@dataclass(frozen=True)
class NewtonState(State):
    """Adds: objective, first objective, scales of the unknowns, trust radius (0: not yet chosen), farthest |u|, steps
    without gain."""

    f: Float[Tensor, " b"]
    first: Float[Tensor, " b"]
    units: Float[Tensor, "b m"]
    radius: Float[Tensor, " b"]
    farthest: Float[Tensor, " b"]
    lull: Int[Tensor, " b"]


def trust_region_step(
    w: Float[Tensor, "b k"], V: Float[Tensor, "b m k"], g: Float[Tensor, "b m"], radius: Float[Tensor, " b"]
) -> tuple[Float[Tensor, "b m"], Float[Tensor, " b"]]:
    """Minimise `g'd + d'Hd/2` over `|d| <= radius`, `H = V diag(w) V'`; return d and the predicted decrease.

    `w` ascends. With fewer vectors than unknowns d stays in their span.
    """
    tiny = torch.finfo(w.dtype).tiny ** 0.5
    c = (V.mT @ g[:, :, None]).squeeze(-1)
    span = w.abs().amax(-1).clamp(min=tiny)
    floor = torch.finfo(w.dtype).eps * span
    low = (floor - w[:, 0]).clamp(min=0.0)
    high = low + c.norm(dim=-1) / radius + floor
    sigma = low.clone()
    for _ in range(25):  # Newton on 1/|d| - 1/radius, kept inside a bracket
        shifted = w + sigma[:, None]
        size = (c / shifted).norm(dim=-1)
        slope = (c.square() / shifted.pow(3)).sum(-1)
        outside = size > radius
        low, high = torch.where(outside, sigma, low), torch.where(outside, high, sigma)
        proposal = sigma + (size / radius - 1) * size.square() / slope.clamp(min=tiny)
        inside = (proposal > low) & (proposal < high)
        step = torch.where(inside, proposal, 0.5 * (low + high))
        close = (size - radius).abs() <= 1e-3 * radius
        sigma = torch.where(close | (~outside & (sigma <= low)), sigma, step)
        if bool((close | (high <= low * (1 + 1e-12))).all()):
            break
    q = -c / (w + sigma[:, None])
    length = q.norm(dim=-1)
    q = torch.where((length > radius)[:, None], q * (radius / length)[:, None], q)
    # Hard case: no pull along the direction of negative curvature, so go along it to the boundary of the ball.
    room = (radius.square() - q.square().sum(-1)).clamp(min=0.0).sqrt()
    falling = (w[:, 0] < -1e3 * floor) & (length < 0.9 * radius)
    sign = torch.where(q[:, 0] < 0, -1.0, 1.0).to(q.dtype)
    first = torch.where(falling, q[:, 0] + sign * room, q[:, 0])
    q = torch.cat([first[:, None], q[:, 1:]], 1)
    predicted = -(c * q + 0.5 * w * q.square()).sum(-1)
    return (V @ q[:, :, None]).squeeze(-1), predicted


def _inflections(instance: Instance, found: Found) -> tuple[Int[Tensor, " k"], Float[Tensor, "k m"]]:
    """Which answers have lower values beside them, and where."""
    index = (found.status == Status.CONVERGED).nonzero().squeeze(1)
    falls, beside = lower_beside(instance.take(index), found.u[index])
    return index[falls], beside[falls]


def _residual(
    u: Float[Tensor, "b m"], f: Float[Tensor, " b"], f_Y: Float[Tensor, "b m"], H: Float[Tensor, "b m m"]
) -> Float[Tensor, " b"]:
    none = u.new_zeros(len(u), 0)
    return residual(Local(u, none, f, f_Y, none, u.new_zeros(len(u), 0, u.shape[1]), H, 0))


def _is_close(
    H: Float[Tensor, "b m m"],
    f_Y: Float[Tensor, "b m"],
    u: Float[Tensor, "b m"],
    error: Float[Tensor, " b"],
    tol: float,
) -> Bool[Tensor, " b"]:
    """Whether Newton's step is negligible; looked at where the residual is small."""
    close = torch.zeros_like(error, dtype=torch.bool)
    index = (error <= tol).nonzero().squeeze(1)
    if len(index):
        step = relative_length(solve_or_least_norm(H[index], f_Y[index]), u[index])
        close = close.index_copy(0, index, hardly_moves(error[index], step))
    return close
