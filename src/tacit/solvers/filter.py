"""The line search of the interior point: what its state is, and which steps its filter accepts.

A trial point is acceptable if, against every remembered pair (violation theta, barrier function phi), it reduces one
of the two by a share. Where the direction promises a decrease of phi that outweighs the violation, an Armijo condition
on phi is asked instead. A full step that fails because rows are curved is tried again with the curvature corrected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from tacit.problem import Instance
from tacit.shapes import Bool, Float, Int, Tensor
from tacit.solvers.barrier import Direction, Model, largest_step
from tacit.solvers.base import State

__all__ = ["MEMORY", "InteriorState", "cleared", "model_at", "search"]

MEMORY = 64
"""Entries of a filter; the oldest goes when it is full."""

GAMMA = 1e-5
"""The share by which a step must reduce violation or barrier function to be acceptable to the filter."""

HALVINGS = 24
REACH = 0.5
"""The longest step, relative to the unknown."""

PATIENCE = 8
"""Steps in a row that may crawl before the violation is reduced by other means."""


@dataclass(frozen=True)
class InteriorState(State):
    """The primal-dual variables, and what the search remembers.

    Attributes:
        lam: multipliers in the units of the problem, as of the last evaluation.
        sigma, d: scales of the objective and of the rows.
        s, y, z: slacks, multipliers of the equalities and of the inequalities, all scaled.
        mu: weight of the barrier.
        delta: the inertia correction that was last needed.
        filter, entries: pairs (violation, barrier function) that a step must beat, and how many there have been.
        ceiling, floor: violations above which no step is taken, and below which the barrier function decides.
        first: the scaled objective at the start.
        restorations: how often the violation alone was reduced.
        polished: the error at which a polish was last tried.
        crawl: how many steps in a row were short and hardly reduced a violation.
        best, since: the least error so far, and for how many steps it has not been halved.
        left: steps still allowed, those of a polish or a restoration counted too.
    """

    lam: Float[Tensor, "b r"]
    sigma: Float[Tensor, " b"]
    d: Float[Tensor, "b r"]
    s: Float[Tensor, "b q"]
    y: Float[Tensor, "b p"]
    z: Float[Tensor, "b q"]
    mu: Float[Tensor, " b"]
    delta: Float[Tensor, " b"]
    filter: Float[Tensor, "b k 2"]
    entries: Int[Tensor, " b"]
    ceiling: Float[Tensor, " b"]
    floor: Float[Tensor, " b"]
    first: Float[Tensor, " b"]
    restorations: Int[Tensor, " b"]
    polished: Float[Tensor, " b"]
    crawl: Int[Tensor, " b"]
    best: Float[Tensor, " b"]
    since: Int[Tensor, " b"]
    left: Int[Tensor, " b"]

    @property
    def multipliers(self) -> Float[Tensor, "b r"]:
        """In the units of the problem and with the sign of `L = f - lam' rows`."""
        return -torch.cat([self.y, self.z], 1) * self.d / self.sigma[:, None]


def cleared(state: InteriorState) -> InteriorState:
    """The state with an empty filter."""
    return replace(state, filter=torch.full_like(state.filter, float("inf")), entries=torch.zeros_like(state.entries))


def model_at(instance: Instance, state: InteriorState) -> tuple[Model, Float[Tensor, " b"]]:
    """Evaluate and scale the problem at the state; also its scaled objective."""
    p, sigma = instance.p, state.sigma[:, None]
    f, f_Y = instance.objective_and_gradient(state.u)
    rows = state.d * instance.rows(state.u)
    A = state.d[:, :, None] * instance.jacobian(state.u)
    H = state.sigma[:, None, None] * instance.hessian(state.u, state.multipliers)
    return Model(sigma * f_Y, A, H, rows[:, :p], rows[:, p:], state.s, state.y, state.z), state.sigma * f


@dataclass(frozen=True)
class _Trial:
    """A point on the way: unknowns, slacks, violation, barrier function, scaled rows."""

    u: Float[Tensor, "k m"]
    s: Float[Tensor, "k q"]
    theta: Float[Tensor, " k"]
    phi: Float[Tensor, " k"]
    c: Float[Tensor, "k r"]


def _try(instance: Instance, state: InteriorState, u: Tensor, s: Tensor) -> _Trial:
    p = instance.p
    rows = state.d * instance.rows(u)
    # A slack may always grow to what its row allows: both violation and barrier fall.
    s = torch.maximum(s, -rows[:, p:])
    c = torch.cat([rows[:, :p], rows[:, p:] + s], 1)
    phi = state.sigma * instance.objective(u) - state.mu * s.log().sum(1)
    return _Trial(u, s, c.abs().sum(1), phi, c)


def search(
    instance: Instance, state: InteriorState, at: Model, f: Float[Tensor, " b"], direction: Direction
) -> tuple[InteriorState, Bool[Tensor, " b"]]:
    """Move along the direction as far as the filter accepts; also say for which elements it accepts nothing."""
    tau = (1.0 - state.mu).clamp(min=0.99)
    theta = at.primal.abs().sum(1)
    phi = f - state.mu * state.s.log().sum(1)
    slope = (at.f_Y * direction.du).sum(1) - (state.mu[:, None] / state.s * direction.ds).sum(1)
    start = _Trial(state.u, state.s, theta, phi, at.primal)
    # Models are trusted as far as the unknown is large: a periodic or a levelling function must not fling it away.
    reach = REACH * state.u.abs().amax(1).clamp(min=1.0) / direction.du.abs().amax(1)
    alpha = torch.minimum(largest_step(state.s, direction.ds, tau), reach)
    taken, length, descent = start, torch.zeros_like(alpha), torch.zeros_like(direction.failed)
    pending = ~direction.failed
    for halving in range(HALVINGS):
        if not bool(pending.any()):
            break
        index = pending.nonzero().squeeze(1)
        part, inner = state.take(index), instance.take(index)
        a = alpha[index, None]
        trial = _try(inner, part, part.u + a * direction.du[index], part.s + a * direction.ds[index])
        ok, armijo = _acceptable(part, _pick(start, index), trial, slope[index], alpha[index])
        if halving == 0 and instance.r and not bool(ok.all()):
            trial, ok, armijo = _corrected(
                inner, part, _pick(start, index), trial, ok, armijo, direction, slope, alpha, index, tau
            )
        good = index[ok]
        taken = _Trial(*(getattr(taken, k).index_copy(0, good, getattr(trial, k)[ok]) for k in _NAMES))
        length = length.index_copy(0, good, alpha[good])
        descent = descent.index_copy(0, good, armijo[ok])
        pending = pending.index_fill(0, good, False)
        alpha = torch.where(pending, 0.5 * alpha, alpha)
    lost = pending | direction.failed
    # Steps below rounding cannot be judged by values that round: let the barrier fall instead.
    short = direction.du.abs().amax(1) <= 10 * torch.finfo(f.dtype).eps * state.u.abs().amax(1).clamp(min=1.0)
    still = lost & ~direction.failed & short & (theta <= 1e-8 * state.ceiling)
    lost = lost & ~still
    # Zigzagging along a violation that hardly falls is as good as no step.
    slow = (length <= 0.2) & (taken.theta > 0.99 * theta) & (theta > state.floor)
    crawl = torch.where(slow & ~descent, state.crawl + 1, 0)
    lost = lost | (crawl >= PATIENCE)
    state = replace(state, crawl=torch.where(lost, 0, crawl))
    return _moved(state, taken, start, direction, length, descent, lost, tau), lost


_NAMES = ("u", "s", "theta", "phi", "c")


def _pick(trial: _Trial, index: Int[Tensor, " k"]) -> _Trial:
    return _Trial(*(getattr(trial, k)[index] for k in _NAMES))


def _acceptable(
    state: InteriorState, start: _Trial, trial: _Trial, slope: Float[Tensor, " k"], alpha: Float[Tensor, " k"]
) -> tuple[Bool[Tensor, " k"], Bool[Tensor, " k"]]:
    """Whether a trial may be taken, and whether it was as a descent of the barrier function."""
    noise = 10 * torch.finfo(trial.phi.dtype).eps * start.phi.abs()
    pairs = state.filter
    allowed = (trial.theta[:, None] < pairs[:, :, 0]) | (trial.phi[:, None] < pairs[:, :, 1])
    ok = allowed.all(1) & (trial.theta <= state.ceiling) & trial.phi.isfinite() & trial.theta.isfinite()
    falls = (slope < 0) & (alpha * (-slope).clamp(min=0.0).pow(2.3) > start.theta.pow(1.1))
    armijo = falls & (start.theta <= state.floor)
    decreases = trial.phi <= start.phi + 1e-4 * alpha * slope + noise
    less = (trial.theta <= (1 - GAMMA) * start.theta) | (trial.phi <= start.phi - GAMMA * start.theta + noise)
    return ok & torch.where(armijo, decreases, less), armijo


def _corrected(
    instance: Instance,
    state: InteriorState,
    start: _Trial,
    trial: _Trial,
    ok: Bool[Tensor, " k"],
    armijo: Bool[Tensor, " k"],
    direction: Direction,
    slope: Float[Tensor, " b"],
    alpha: Float[Tensor, " b"],
    index: Int[Tensor, " k"],
    tau: Float[Tensor, " b"],
) -> tuple[_Trial, Bool[Tensor, " k"], Bool[Tensor, " k"]]:
    """Try rejected full steps again with a second-order correction of the rows."""
    c = direction.model.primal.clone()
    c[index] = alpha[index, None] * start.c + trial.c
    second = direction.with_primal(c)
    a = largest_step(state.s, second.ds[index], tau[index])
    again = _try(instance, state, state.u + a[:, None] * second.du[index], state.s + a[:, None] * second.ds[index])
    ok2, armijo2 = _acceptable(state, start, again, slope[index], alpha[index])
    use = ~ok & ok2 & (trial.theta >= start.theta)
    chosen = [
        torch.where(use.reshape(-1, *(1,) * (getattr(trial, k).dim() - 1)), getattr(again, k), getattr(trial, k))
        for k in _NAMES
    ]
    return _Trial(*chosen), ok | use, torch.where(use, armijo2, armijo)


def _moved(
    state: InteriorState,
    taken: _Trial,
    start: _Trial,
    direction: Direction,
    length: Float[Tensor, " b"],
    descent: Bool[Tensor, " b"],
    lost: Bool[Tensor, " b"],
    tau: Float[Tensor, " b"],
) -> InteriorState:
    """The state after the step: filter, multipliers and slacks brought up to date."""
    remember = ~descent & ~lost & (length > 0)
    entry = torch.stack([(1 - GAMMA) * start.theta, start.phi - GAMMA * start.theta], 1)
    slot = torch.nn.functional.one_hot(state.entries % MEMORY, MEMORY).bool() & remember[:, None]
    dual = largest_step(state.z, direction.dz, tau)
    y = state.y + length[:, None] * direction.dy
    z = state.z + torch.where(length > 0, dual, 0.0)[:, None] * direction.dz
    centre = state.mu[:, None] / taken.s
    return replace(
        state,
        u=taken.u,
        s=taken.s,
        y=y,
        z=torch.minimum(torch.maximum(z, centre / 1e10), centre * 1e10),
        delta=torch.where(direction.delta > 0, direction.delta, state.delta),
        filter=torch.where(slot[:, :, None], entry[:, None, :], state.filter),
        entries=state.entries + remember,
    )
