"""Clarabel, an interior point for convex cone programs, here for quadratic ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.problem import Status
from tacit.solvers.external._engine import Answer, QuadraticEngine, require

__all__ = ["Clarabel"]

VERDICTS = {
    "Solved": Status.CONVERGED,
    "AlmostSolved": Status.CONVERGED,
    "PrimalInfeasible": Status.INFEASIBLE,
    "AlmostPrimalInfeasible": Status.INFEASIBLE,
    "DualInfeasible": Status.UNBOUNDED,
    "AlmostDualInfeasible": Status.UNBOUNDED,
    "MaxIterations": Status.MAX_ITERATIONS,
}


@dataclass(frozen=True)
class Clarabel(QuadraticEngine):
    """Clarabel for quadratic objectives and linear rows; `pip install tacit[clarabel]`."""

    def load(self) -> Any:
        return require("clarabel", "'tacit[clarabel]'", "Clarabel")

    def program(self, Q: Any, q: Any, A: Any, b: Any, G: Any, h: Any) -> Answer:
        numpy = require("numpy", "numpy", "Clarabel")
        sparse = require("scipy.sparse", "'tacit[clarabel]'", "Clarabel")
        clarabel = self.load()
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_iter = False, self.max_iter
        cones = [clarabel.ZeroConeT(len(b)), clarabel.NonnegativeConeT(len(h))]
        cones = [cone for cone, size in zip(cones, (len(b), len(h)), strict=True) if size]
        rows = sparse.csc_matrix(numpy.concatenate([A, G]))
        upper = sparse.csc_matrix(numpy.triu(Q))
        found = clarabel.DefaultSolver(upper, q, rows, numpy.concatenate([b, h]), cones, settings).solve()
        verdict = VERDICTS.get(str(found.status), Status.STALLED)
        return Answer(numpy.array(found.x), -numpy.array(found.z), int(found.iterations), verdict)
