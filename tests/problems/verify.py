"""Solve every test problem with SciPy, polish, and compare with what is published.

    python -m problems.verify [name ...]        (from the folder `tests`)

Nothing of the library's solvers or derivatives is used: this is what the problems themselves are checked with.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize

from . import PROBLEMS
from .base import TestProblem

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
ACTIVE, MULTIPLIER, RANK, EXACT = 1e-6, 1e-7, 1e-9, 1e-15


@dataclass
class Calculus:
    """One sample of a problem as NumPy functions of u, derivatives by automatic differentiation."""

    given: TestProblem
    x: torch.Tensor

    def call(self, which: str, u: Array, order: int = 0) -> Array:
        function = getattr(self.given, which)
        at = torch.from_numpy(np.asarray(u, dtype=np.float64))
        if function is None:
            shape = () if which == "objective" else (0,)
            return np.zeros(shape + (self.given.m,) * order)
        for _ in range(order):
            function = torch.func.jacrev(function, argnums=1)
        result: Array = function(self.x, at).detach().numpy()
        return result

    def rows(self, u: Array, active: Indices, order: int = 0) -> Array:
        """The equality rows and the active inequality rows (<= 0), or their derivatives."""
        return np.concatenate([self.call("equality", u, order), self.call("inequality", u, order)[active]])

    def lagrangian_hessian(self, u: Array, active: Indices, mu: Array) -> Array:
        return self.call("objective", u, 2) + np.tensordot(mu, self.rows(u, active, 2), axes=1)


@dataclass
class Report:
    """What was found for one sample: grad f + mu' rows = 0 at y, with mu >= 0 on the active inequalities."""

    method: str
    y: Array
    f: float
    residual: float
    violation: float
    active: int
    rank: int
    least_multiplier: float
    least_curvature: float
    condition: float
    noise: float

    def kind(self, given: TestProblem) -> str:
        if self.rank < given.p + self.active:
            return "dependent"
        if self.least_curvature < 1e-8:
            return "singular"
        return "weak" if self.least_multiplier < 1e-6 else "regular"


def candidates(calculus: Calculus, start: Array) -> Iterator[tuple[str, Array]]:
    """Points found by SciPy from the start, tight tolerances first."""

    def objective(u: Array) -> float:
        return float(calculus.call("objective", u))

    def gradient(u: Array) -> Array:
        return calculus.call("objective", u, 1)

    given = calculus.given
    signs = {"equality": ("eq", 1.0), "inequality": ("ineq", -1.0)}
    constraints = [
        {
            "type": kind,
            "fun": lambda u, w=which, s=sign: s * calculus.call(w, u),
            "jac": lambda u, w=which, s=sign: s * calculus.call(w, u, 1),
        }
        for which, (kind, sign) in signs.items()
        if getattr(given, which) is not None
    ]
    for tolerance in (1e-14, 1e-10, 1e-6):
        options = {"maxiter": 1000, "ftol": tolerance}
        found = optimize.minimize(
            objective, start, jac=gradient, constraints=constraints, method="SLSQP", options=options
        )
        yield f"slsqp {tolerance:g}", found.x
    if not constraints:
        found = optimize.minimize(objective, start, jac=gradient, method="BFGS", options={"gtol": 1e-10})
        yield "bfgs", found.x
        curved = {"hess": lambda u: calculus.call("objective", u, 2), "options": {"gtol": 1e-10, "maxiter": 5000}}
        found = optimize.minimize(objective, start, jac=gradient, method="trust-exact", **curved)
        yield "trust-exact", found.x
        return
    bounds = {"equality": (0.0, 0.0), "inequality": (-np.inf, 0.0)}
    general = [
        optimize.NonlinearConstraint(
            lambda u, w=which: calculus.call(w, u), *bounds[which], jac=lambda u, w=which: calculus.call(w, u, 1)
        )
        for which in signs
        if getattr(given, which) is not None
    ]
    found = optimize.minimize(
        objective,
        start,
        jac=gradient,
        hess=lambda u: calculus.call("objective", u, 2),
        constraints=general,
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-14, "barrier_tol": 1e-10, "maxiter": 2000},
    )
    yield "trust-constr", found.x


def multipliers(calculus: Calculus, u: Array, active: Indices) -> Array:
    """Least squares for grad f + mu' rows = 0, non-negative on the inequalities."""
    jacobian = calculus.rows(u, active, 1)
    if not jacobian.size:
        return np.zeros(jacobian.shape[0])
    lower = np.concatenate([np.full(calculus.given.p, -np.inf), np.zeros(len(active))])
    return np.asarray(optimize.lsq_linear(jacobian.T, -calculus.call("objective", u, 1), (lower, np.inf)).x)


def polish(calculus: Calculus, u: Array, moves: int) -> tuple[Array, Array, Indices]:
    """Newton's method on the KKT equations of the rows that are active near u."""
    inequality = calculus.call("inequality", u)
    slope = 1 + np.abs(calculus.call("inequality", u, 1)).max(axis=1, initial=0.0)
    active = np.flatnonzero(np.abs(inequality) <= ACTIVE * slope * (1 + np.abs(u).max()))
    mu = multipliers(calculus, u, active)
    best, size = (u, mu), np.inf
    for _ in range(moves):
        jacobian = calculus.rows(u, active, 1)
        residual = np.concatenate([calculus.call("objective", u, 1) + mu @ jacobian, calculus.rows(u, active)])
        if not np.isfinite(residual).all() or np.abs(residual).max(initial=0.0) >= size:
            break
        best, size = (u, mu), np.abs(residual).max(initial=0.0)
        if size <= EXACT:
            break
        zero = np.zeros((len(mu), len(mu)))
        matrix = np.block([[calculus.lagrangian_hessian(u, active, mu), jacobian.T], [jacobian, zero]])
        if not np.isfinite(matrix).all():
            break
        step = np.linalg.lstsq(matrix, -residual, rcond=1e-14)[0]
        u, mu = u + step[: len(u)], mu + step[len(u) :]
    return best[0], best[1], active


def least_eigenvalue(hessian: Array, rows: Array) -> float:
    """The least curvature along the directions that the rows leave free, relative to the largest entry."""
    if not (np.isfinite(hessian).all() and np.isfinite(rows).all()):
        return -np.inf
    _, values, basis = np.linalg.svd(rows, full_matrices=True)
    free = basis[int((values > RANK).sum()) :]
    curvature = np.linalg.eigvalsh(free @ hessian @ free.T) / max(np.abs(hessian).max(), 1e-300)
    return float(curvature.min(initial=np.inf))


def examine(calculus: Calculus, method: str, u: Array, moves: int = 30) -> Report:
    """Polish a candidate by at most so many Newton steps and measure how good a minimum, and how regular, it is."""
    y, mu, active = polish(calculus, u, moves)
    jacobian = calculus.rows(y, active, 1)
    residual = np.abs(calculus.call("objective", y, 1) + mu @ jacobian).max()
    h, g = calculus.call("equality", y), calculus.call("inequality", y)
    violation = max(np.abs(h).max(initial=0.0), g.max(initial=0.0))
    scaled = jacobian / np.maximum(np.linalg.norm(jacobian, axis=1, keepdims=True), 1e-300)
    rank = int((np.linalg.svd(scaled, compute_uv=False) > RANK).sum())
    strong = np.concatenate([np.full(calculus.given.p, True), mu[calculus.given.p :] > MULTIPLIER])
    hessian = calculus.lagrangian_hessian(y, active, mu)
    curvature = least_eigenvalue(hessian, scaled[strong])  # along the rows that carry a multiplier
    diagonal = np.diag(hessian)
    if (diagonal > 0).all():  # badly scaled unknowns are not singular ones
        unit = 1 / np.sqrt(diagonal)
        across = scaled[strong] * unit
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
        curvature = max(curvature, least_eigenvalue(unit[:, None] * hessian * unit, across))
    zero = np.zeros((len(mu), len(mu)))
    largest = np.abs(hessian).max()
    matrix = np.block([[hessian / (largest if largest > 0 else 1.0), scaled.T], [scaled, zero]])
    return Report(
        method=method,
        y=y,
        f=float(calculus.call("objective", y)),
        residual=float(residual),
        violation=float(violation),
        active=len(active),
        rank=rank,
        least_multiplier=float(mu[calculus.given.p :].min(initial=np.inf)),
        least_curvature=curvature,
        condition=float(np.linalg.cond(matrix)) if np.isfinite(matrix).all() else np.inf,
        noise=float((np.abs(hessian) @ np.abs(y)).max()),
    )


def good(report: Report) -> bool:
    """Is it a stationary point, up to the rounding of its gradient?"""
    return report.residual < 1e-7 + 1e-12 * report.noise and report.violation < 1e-9


def solve(given: TestProblem, sample: int) -> list[Report]:
    """Every candidate, best first: from the standard start, then from the published solution of the nominal sample.

    The nominal sample's published value says which minimum is meant; for the others it is the lowest one found.
    """
    calculus = Calculus(given, given.x[sample])
    reports: list[Report] = []

    def wanted(report: Report) -> bool:
        known = given.f if sample == 0 and given.f is not None else report.f
        return good(report) and report.kind(given) == given.kind and abs(report.f - known) <= 1e-6 * max(1, abs(known))

    with np.errstate(all="ignore"):
        for prefix, start in (("", given.start), ("near ", given.y)):
            if start is None or (sample == 0 and any(wanted(report) for report in reports)):
                continue
            found = candidates(calculus, start.numpy())
            for method, point in chain([("newton", start.numpy())], found) if prefix else found:
                if np.isfinite(point).all():
                    reports.append(examine(calculus, prefix + method, point))
                    if wanted(reports[-1]):
                        break
        if given.y is not None and sample == 0:
            reports.append(examine(calculus, "published", given.y.numpy()))
    return sorted(reports, key=lambda r: (not wanted(r), not good(r), round(r.f, 9) if sample else 0))


def main(names: list[str]) -> None:
    """One line a sample."""
    torch.set_num_threads(1)
    write = sys.stdout.write
    for name in names or PROBLEMS:
        given = PROBLEMS[name]
        for sample in range(given.x.shape[0]):
            reports = solve(given, sample)
            if not reports:
                write(f"{name:28s} {sample} nothing finite\n")
                continue
            best = reports[0]
            gap = "" if given.f is None or sample else f"gap {(best.f - given.f) / max(1, abs(given.f)):9.1e}"
            off = "" if given.y is None or sample else f"dy {np.abs(best.y - given.y.numpy()).max():8.1e}"
            write(
                f"{name:28s} {sample} {given.kind:11s} found {best.kind(given):9s} {best.method:12s} f {best.f:16.9g} "
                f"kkt {best.residual:7.1e} viol {best.violation:7.1e} mu {best.least_multiplier:8.1e} "
                f"curv {best.least_curvature:8.1e} cond {best.condition:7.1e} {gap} {off}\n"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
