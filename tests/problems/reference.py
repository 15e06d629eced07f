"""Derivatives of test problems' solutions by nothing but solving again: what the library's own are compared with.

The KKT equations of the rows that hold at y are solved anew, by Newton's method in float64, at parameters beside x; central
differences at halved steps are extrapolated to step zero, entry by entry, as far as rounding allows, and the last two
columns of the extrapolation tell how far that was. Nothing of the library takes part: no solver, no active set, no rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.func import grad, jacrev, vmap

from .base import TestProblem
from .verify import Array, Calculus, Indices, examine, good, multipliers, polish, solve

LEVELS = 7
WIDEST = 0.02  # of the parameter, and of y
FIRST = 1e-6  # the step that finds out how fast y moves
PUSHES = 1e-8


@dataclass
class Reference:
    """At one sample: `y`, its derivative `Dy` (m, n), an estimate of the error of every entry, the rows that hold."""

    y: Array
    Dy: Array
    error: Array
    active: Indices


def solution(given: TestProblem, sample: int) -> Array | None:
    """The solution at a sample: the published one followed from the nominal parameters, or solved for; None if neither."""
    calculus = Calculus(given, given.x[sample])
    if given.y is not None:
        nominal = Calculus(given, given.x[0])
        y, _, active = polish(nominal, given.y.numpy(), 30)
        if sample == 0:
            return y
        active = _pushing(nominal, y, active)
        u, lam = torch.from_numpy(y)[None], _multipliers(nominal, y, active)
        for t in np.linspace(0, 1, 5)[1:]:
            u, lam = newton(given, given.x[0] + t * (given.x[sample : sample + 1] - given.x[0]), u, lam, active)
        found = u[0].numpy()
        if np.isfinite(found).all() and _is_kept(calculus, found, active):
            return found
    reports = solve(given, sample)
    if reports and good(reports[0]) and reports[0].kind(given) == given.kind:
        return reports[0].y
    return None


def derivative(given: TestProblem, sample: int, y: Array) -> Reference | None:
    """Dy at a sample, given its solution; None where the rows that hold and the curvature do not determine y."""
    calculus = Calculus(given, given.x[sample])
    y, _, active = polish(calculus, y, 30)
    active = _pushing(calculus, y, active)
    if given.objective is None and given.p + len(active) < given.m:
        return None
    x = given.x[sample]
    base, lam = newton(given, x[None], torch.from_numpy(y)[None], _multipliers(calculus, y, active), active)
    moved = {sign: (base.expand(given.n, -1), lam.expand(given.n, -1)) for sign in (1.0, -1.0)}

    def slopes(step: torch.Tensor) -> torch.Tensor:
        for sign, (u, mu) in moved.items():
            moved[sign] = newton(given, x + sign * torch.diag(step), u, mu, active)
        return (moved[1.0][0] - moved[-1.0][0]) / (2 * step[:, None])

    size = torch.where(x == 0, torch.ones_like(x), x.abs())
    room = torch.maximum(base.abs(), 1e-3 * base.abs().amax()).clamp_min(1e-12)
    speed = (slopes(FIRST * size).abs() / room).amax(1)
    widest = WIDEST * torch.minimum(size, 1 / speed.clamp_min(1e-30))
    narrow_first = [slopes(widest * 0.5**level) for level in range(LEVELS - 1, -1, -1)]
    Dy, error = extrapolate(torch.stack(narrow_first[::-1]).numpy())
    return Reference(base[0].numpy(), Dy.T, error.T, active)


def natural_size(given: TestProblem, sample: int, reference: Reference) -> Array:
    """What errors of the entries of Dy are measured against, (m, n): the largest of the row, or a share of |y| / |x|."""
    x = given.x[sample].abs().numpy()
    share = 1e-5 * max(np.abs(reference.y).max(), 1e-12) / np.where(x == 0, 1.0, x)
    return np.maximum(np.abs(reference.Dy).max(axis=1, keepdims=True), share)


def extrapolate(slopes: Array) -> tuple[Array, Array]:
    """The limit of slopes at halved steps, widest first, and the size of its error: Neville's scheme in the step squared."""
    best, error = slopes[-1].copy(), np.full(slopes.shape[1:], np.inf)
    column = slopes
    for order in range(1, len(slopes)):
        weight = 4.0**order
        refined = (weight * column[1:] - column[:-1]) / (weight - 1)
        for level in range(len(refined)):
            change = np.maximum(np.abs(refined[level] - column[level + 1]), np.abs(refined[level] - column[level]))
            better = np.nan_to_num(change, nan=np.inf) < error
            best, error = np.where(better, refined[level], best), np.where(better, change, error)
        column = refined
    return best, error


def newton(
    given: TestProblem, x: torch.Tensor, u: torch.Tensor, lam: torch.Tensor, active: Indices
) -> tuple[torch.Tensor, torch.Tensor]:
    """Roots of [f_u - lam' A; rows] for a batch of parameters, from u and lam; NaN where there is none nearby."""
    chosen = torch.from_numpy(active)

    def rows(v: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        parts = [] if given.equality is None else [given.equality(x, v)]
        parts += [] if given.inequality is None else [given.inequality(x, v)[chosen]]
        return torch.cat(parts) if parts else v.new_zeros(0)

    def residual(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        v, mu = z[: given.m], z[given.m :]

        def lagrangian(v: torch.Tensor) -> torch.Tensor:
            f = 0 * v.sum() if given.objective is None else given.objective(x, v)
            return f - mu @ rows(v, x)

        value = torch.cat([grad(lagrangian)(v), rows(v, x)])
        return value, value

    z = torch.cat([u, lam], 1)
    best, least, idle = torch.full_like(z, torch.nan), torch.full((len(u),), torch.inf, dtype=u.dtype), 0
    for _ in range(40):
        K, R = vmap(jacrev(residual, has_aux=True))(z, x)
        if not bool((K.isfinite().flatten(1).all(1) & R.isfinite().all(1)).any()):
            break
        step = _solve_scaled(K, R)
        length = (step[:, : given.m].abs() / (z[:, : given.m].abs().amax(1, keepdim=True) + 1e-12)).amax(1)
        better = length < least
        z = z - step
        best = torch.where(better[:, None], z, best)
        least = torch.where(better, length, least)
        idle = 0 if bool((better & (length > 1e-15)).any()) else idle + 1
        if idle >= 2:
            break
    best = torch.where((least < 1e-6)[:, None], best, torch.nan)
    return best[:, : given.m], best[:, given.m :]


def _solve_scaled(K: torch.Tensor, R: torch.Tensor) -> torch.Tensor:
    """K^-1 R with rows and columns brought to size one, and one refinement."""
    row, column = torch.ones_like(R), torch.ones_like(R)
    for _ in range(8):
        S = row[:, :, None] * K * column[:, None, :]
        row = row / S.abs().amax(2).clamp_min(1e-300).sqrt()
        column = column / S.abs().amax(1).clamp_min(1e-300).sqrt()
    S = row[:, :, None] * K * column[:, None, :]
    lu, pivots, _ = torch.linalg.lu_factor_ex(S.nan_to_num(0.0) + 0.0)
    step = torch.zeros_like(R)
    for _ in range(2):
        left = R - (K @ step[..., None])[..., 0]
        step = step + column * torch.linalg.lu_solve(lu, pivots, (row * left)[..., None])[..., 0]
    return step


def _multipliers(calculus: Calculus, y: Array, active: Indices) -> torch.Tensor:
    """(1, rows), with the sign of L = f - lam' rows."""
    jacobian = calculus.rows(y, active, 1)
    if not len(jacobian):
        return torch.zeros(1, 0, dtype=torch.float64)
    size = np.abs(jacobian).max(axis=1, keepdims=True)
    scaled = np.linalg.lstsq((jacobian / size).T, calculus.call("objective", y, 1), rcond=None)[0]
    return torch.from_numpy(scaled / size[:, 0])[None]


def _pushing(calculus: Calculus, y: Array, active: Indices) -> Indices:
    """Without the rows that touch and do not push; of a feasibility problem all that touch."""
    if calculus.given.objective is None:
        return active
    mu = multipliers(calculus, y, active)[calculus.given.p :]
    return active[mu > PUSHES * max(1.0, np.abs(mu).max(initial=0.0))]


def _is_kept(calculus: Calculus, y: Array, active: Indices) -> bool:
    """Whether y is feasible, and a minimum with the same rows."""
    report = examine(calculus, "followed", y)
    there = polish(calculus, y, 0)[2]
    as_declared = calculus.given.objective is None or report.kind(calculus.given) == calculus.given.kind
    return good(report) and as_declared and set(active) <= set(there)
