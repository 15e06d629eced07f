"""Which rows hold at y, and with what multipliers.

An equality is always active. An inequality is active by its value *and* its multiplier, both measured in natural sizes
(`scales.py`): a row that touches and pushes is ACTIVE, one that touches without pushing is WEAK (the gradient is then
one-sided), one that does neither is INACTIVE. Rows that others already imply are DEPENDENT.

The multipliers solve `lam' A = f_Y` on the active rows, with the paper's sign `lam_i <= 0` for inequalities. (The proof
of the inequality proposition prints "non-negativity"; its statement, used here, is right.)

Where active rows are independent their multipliers are unique and follow from y by least squares. Where they are not,
a sign-feasible choice is made: the solver's own if it is one, else a sign-constrained least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch

from tacit.linalg import independent_rows, sign_constrained_least_squares
from tacit.problem.instance import Instance
from tacit.problem.scales import probe_direction, root_eps, unknown_scale
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["ActiveSet", "RowState", "find_active_set"]


class RowState(IntEnum):
    """What one constraint row does at y."""

    INACTIVE = 0
    ACTIVE = 1
    WEAK = 2
    DEPENDENT = 3


@dataclass(frozen=True)
class ActiveSet:
    """Multipliers and row states at y.

    Attributes:
        lam: `(b, r)`, zero on rows that are not active.
        state: `(b, r)` int8, values of `RowState`.
        residual: `(b,)`, scaled size of the first-order conditions: stationarity and feasibility.
        finite: `(b,)`, False where a function or derivative is NaN or infinite at y.
    """

    lam: Float[Tensor, "b r"]
    state: Int[Tensor, "b r"]
    residual: Float[Tensor, " b"]
    finite: Bool[Tensor, " b"]


@dataclass(frozen=True)
class _Scaled:
    """First-order data in natural units: unit rows, slack per unit of row, force in units of the unknowns."""

    rows: Float[Tensor, "b r m"]  # unit length in the max-norm; zero where the gradient vanishes
    length: Float[Tensor, "b r"]
    slack: Float[Tensor, "b r"]
    force: Float[Tensor, "b m"]
    bend: Float[Tensor, "b m"]  # change of the force over a distance of natural size
    vanishing: Bool[Tensor, "b r"]  # the row's gradient is nothing but rounding
    equality: Bool[Tensor, "b r"]

    def take(self, index: Bool[Tensor, " b"]) -> _Scaled:
        return _Scaled(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def find_active_set(
    instance: Instance,
    y: Float[Tensor, "b m"],
    given: Float[Tensor, "b r"] | None = None,
    tolerance: float | None = None,
) -> ActiveSet:
    """Find active rows and multipliers at y.

    Args:
        instance: the problem at its inputs.
        y: the solution, from anywhere.
        given: a solver's multipliers, used where rows are dependent.
        tolerance: relative size under which a value or multiplier counts as zero; the default knows the dtype.
    """
    scaled, finite = _measure(instance, y)
    near = 4 * root_eps(y.dtype) if tolerance is None else tolerance
    touching = _touching(scaled, near)
    mu, independent = _least_squares(scaled, touching)
    residual = _stationarity(scaled, mu)
    signed = (_push(scaled, mu) >= -near) | scaled.equality | ~touching
    easy = independent & signed.all(1) & ((residual <= near) | ~finite)
    keep = touching.clone()
    hard = ~easy
    if bool(hard.any()):
        part = scaled.take(hard)
        own = None if given is None else -(given * scaled.length)[hard]
        mu[hard], touching[hard], keep[hard], residual[hard] = _hard_cases(part, near, own)
    state = _classify(instance, scaled, mu, touching, keep, residual, near)
    nu = torch.where((state == RowState.ACTIVE) & (scaled.length > 0), mu / scaled.length.clamp_min(1e-300), 0.0)
    violation = torch.where(scaled.equality, scaled.slack.abs(), scaled.slack).clamp_min(0)
    worst = torch.maximum(residual, violation.amax(1)) if instance.r else residual
    at_all = finite[:, None]  # where a number is missing, nothing can be said of a row but which are equalities
    state = torch.where(at_all, state, scaled.equality.to(state.dtype) * int(RowState.ACTIVE))
    nu = torch.where(at_all, nu, 0.0)
    return ActiveSet(-nu, state, torch.where(finite, worst, torch.inf), finite)


def _measure(instance: Instance, y: Tensor) -> tuple[_Scaled, Tensor]:
    """Evaluate first derivatives and divide everything by its natural size."""
    scale = unknown_scale(instance, y)
    direction = probe_direction(scale)
    force, rows, A = instance.gradient(y), instance.rows(y), instance.jacobian(y)
    curvature = instance.row_curvature(y, direction).abs()
    bend = instance.hessian_product(y, torch.zeros_like(rows), direction)
    finite = force.isfinite().all(1) & rows.isfinite().all(1) & A.isfinite().flatten(1).all(1)
    clean = finite[:, None]
    force, rows, A = force.where(clean, 0.0), rows.where(clean, 0.0), A.where(clean[..., None], 0.0)
    curvature, bend = curvature.nan_to_num(0.0, 0.0, 0.0), bend.nan_to_num(0.0, 0.0, 0.0)
    unscaled, A, force = A, A * scale[:, None, :], force * scale
    length = A.abs().amax(2) if instance.r else rows
    vanishing = length <= 4 * root_eps(y.dtype) * curvature
    if bool(vanishing.any()):  # or are the units of the unknowns so different that some are smaller than supposed?
        vanishing &= _vanishing_in_small_units(instance, y, unscaled)
    size = torch.where(vanishing, torch.maximum(length, root_eps(y.dtype) * curvature), length)
    tiny = torch.finfo(y.dtype).tiny
    equality = (torch.arange(instance.r, device=y.device) < instance.p).expand_as(rows)
    return _Scaled(
        rows=torch.where(vanishing[..., None], 0.0, A / length.clamp_min(tiny)[..., None]),
        length=length,
        slack=torch.where(size > 0, rows / size.clamp_min(tiny), rows.sign() / tiny**0.5),
        force=force,
        bend=(bend * scale).abs(),
        vanishing=vanishing,
        equality=equality,
    ), finite


def _vanishing_in_small_units(instance: Instance, y: Tensor, A: Tensor) -> Bool[Tensor, "b r"]:
    """Which rows of A are nothing but rounding where an unknown may be as small as half of the dtype's digits."""
    scale = unknown_scale(instance, y, root_eps(y.dtype))
    curvature = instance.row_curvature(y, probe_direction(scale)).abs().nan_to_num(0.0, 0.0, 0.0)
    return (A * scale[:, None, :]).abs().amax(2) <= 4 * root_eps(y.dtype) * curvature


def _touching(scaled: _Scaled, tolerance: float) -> Tensor:
    return (scaled.equality | (scaled.slack >= -tolerance)) & ~scaled.vanishing


def _least_squares(scaled: _Scaled, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Multipliers of the masked unit rows by refined normal equations, and whether the rows are safely independent."""
    rows = scaled.rows * mask[..., None]
    if rows.shape[1] == 0:
        return rows.sum(2), torch.ones(rows.shape[0], dtype=torch.bool, device=rows.device)
    norms = rows.norm(dim=2).clamp_min(1e-30)
    unit = rows / norms[..., None]
    gram = unit @ unit.mT + torch.diag_embed((~mask).to(rows.dtype))
    factor, info = torch.linalg.cholesky_ex(gram)
    pivots = factor.diagonal(dim1=1, dim2=2).amin(1)
    independent = (info == 0) & (pivots > 0.01 * torch.finfo(rows.dtype).eps ** 0.25)
    factor = torch.where(
        independent[:, None, None], factor, torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    )
    mu = torch.zeros_like(scaled.slack)[..., None]
    for _ in range(2):  # the second round is a refinement
        left = -scaled.force[..., None] - unit.mT @ mu
        mu = mu + torch.cholesky_solve(unit @ left, factor)
    return torch.where(mask & independent[:, None], mu[..., 0] / norms, 0.0), independent


def _push(scaled: _Scaled, mu: Tensor) -> Float[Tensor, "b r"]:
    """How hard every row pushes, with its sign: in the unknown where it matters most, beside the other forces there.

    Unknowns are looked at one by one, since a multiplier may act on small ones only, where all forces are small.
    """
    if mu.shape[0] == 0 or mu.shape[1] == 0:
        return mu
    pushes = (scaled.rows * mu[..., None]).abs()
    there = torch.maximum(torch.maximum(scaled.bend, scaled.force.abs()), pushes.amax(1))
    floor = 8 * torch.finfo(mu.dtype).eps * there.amax(1, keepdim=True)
    there = torch.maximum(there, floor).clamp_min(torch.finfo(mu.dtype).tiny)
    return mu.sign() * (pushes / there[:, None, :]).amax(2)


def _stationarity(scaled: _Scaled, mu: Tensor) -> Tensor:
    """|f_Y + A' nu| in natural units: relative to the forces at work and to the curvature of the objective."""
    if scaled.force.shape[0] == 0:
        return scaled.force.sum(1)
    pushes = scaled.rows * mu[..., None]
    left = (scaled.force + pushes.sum(1)).abs().amax(1)
    size = scaled.bend.amax(1)
    if pushes.shape[1]:
        size = torch.maximum(size, pushes.abs().flatten(1).amax(1))
    return torch.where(left > 0, left / size.clamp_min(torch.finfo(left.dtype).tiny), 0.0)


def _hard_cases(scaled: _Scaled, near: float, own: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Dependent rows, wrong signs, or a y too rough for the value test: sign-constrained least squares, and wider nets.

    The net widens only as long as the first-order conditions do not balance; a row is charged for its slack, so that
    one which does not touch gets a multiplier only if the touching ones cannot explain the force.
    """
    best_mu, best_mask, best = _explained(scaled, near)
    for tolerance in (max(near, 1e-5), max(near, 1e-3)):
        mu, mask, residual = _explained(scaled, tolerance)
        better = (best > near) & (residual < 0.1 * best)
        best_mu = torch.where(better[:, None], mu, best_mu)
        best_mask = torch.where(better[:, None], mask, best_mask)
        best = torch.where(better, residual, best)
    support = scaled.equality | (_push(scaled, best_mu) > near)
    keep = independent_rows(scaled.rows, best_mask, support)
    if own is not None:  # the solver's multipliers, where several choices exist and its own is one of them
        own = torch.where(best_mask, own, 0.0)
        admissible = ((_push(scaled, own) >= -near) | scaled.equality).all(1)
        theirs = _stationarity(scaled, own)
        several = (best_mask & ~keep).any(1)
        # Shared out among dependent rows they would lose the part of the rows that are dropped.
        shared_out = ((_push(scaled, own).abs() > near) & ~keep).any(1)
        use = several & admissible & ~shared_out & (theirs <= torch.maximum(best, torch.full_like(best, near)))
        best_mu = torch.where(use[:, None], own, best_mu)
        best = torch.where(use, theirs, best)
    return best_mu, best_mask, keep, best


def _explained(scaled: _Scaled, tolerance: float) -> tuple[Tensor, Tensor, Tensor]:
    """The least multipliers of rows within `tolerance` that explain the force; those rows; what is left over."""
    mask = _touching(scaled, tolerance)
    charge = torch.where(scaled.equality, 0.0, scaled.slack.abs())
    mu = sign_constrained_least_squares(scaled.rows, -scaled.force, scaled.equality, mask, charge)[0]
    return mu, mask, _stationarity(scaled, mu)


def _classify(
    instance: Instance, scaled: _Scaled, mu: Tensor, touching: Tensor, keep: Tensor, residual: Tensor, near: float
) -> Tensor:
    state = torch.full(scaled.slack.shape, int(RowState.INACTIVE), dtype=torch.int8, device=mu.device)
    if instance.r == 0:
        return state
    push = _push(scaled, mu)
    left = torch.where(residual <= near, residual, 0.0)
    # A multiplier counts as zero below `near`, or below less where y is known to more digits than that asks for.
    known = _accuracy(scaled, touching, torch.where(residual <= near, residual, near))
    pushing = scaled.equality | (push > (near * known).sqrt().clamp_max(near)[:, None])
    if not instance.has_objective:
        pushing = touching  # every multiplier vanishes: active by value alone, and never called weak
    accuracy = _accuracy(scaled, pushing & touching, left)
    exact = scaled.slack >= -8 * accuracy[:, None]
    state[touching & pushing & keep] = int(RowState.ACTIVE)
    state[touching & ~pushing & exact & keep] = int(RowState.WEAK)
    state[touching & ~keep & (pushing | exact)] = int(RowState.DEPENDENT)
    state[scaled.vanishing & (scaled.equality | (scaled.slack >= -near))] = int(RowState.DEPENDENT)
    return state


def _accuracy(scaled: _Scaled, holding: Bool[Tensor, "b r"], left: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
    """How well y is known: the slack of the rows that hold it, or what stationarity leaves over."""
    slack = torch.where(holding, scaled.slack.abs(), 0.0).amax(1)
    return torch.maximum(slack, left).clamp(64 * torch.finfo(left.dtype).eps, 1e-3)
