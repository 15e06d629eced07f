"""DAQP, a dual active-set engine for dense strictly convex quadratic programs, over a pool of threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.problem import Status
from tacit.solvers.external._engine import Answer, QuadraticEngine, require

__all__ = ["Daqp"]

VERDICTS = {
    1: Status.CONVERGED,
    2: Status.CONVERGED,
    -1: Status.INFEASIBLE,
    -3: Status.UNBOUNDED,
    -4: Status.MAX_ITERATIONS,
}


@dataclass(frozen=True)
class Daqp(QuadraticEngine):
    """DAQP for quadratic objectives and linear rows; `pip install tacit[daqp]`."""

    threads: int = 4

    def load(self) -> Any:
        return require("daqp", "'tacit[daqp]'", "Daqp")

    def program(self, Q: Any, q: Any, A: Any, b: Any, G: Any, h: Any) -> Answer:
        numpy = require("numpy", "numpy", "Daqp")
        p, r = len(b), len(b) + len(h)
        rows = numpy.ascontiguousarray(numpy.concatenate([A, G]))
        upper = numpy.concatenate([b, h])
        lower = numpy.concatenate([b, numpy.full(r - p, -1e30)])
        sense = numpy.concatenate([numpy.full(p, 5), numpy.zeros(r - p)]).astype(numpy.int32)
        u, _, flag, info = self.load().solve(
            numpy.ascontiguousarray(Q), q.copy(), rows, upper, lower, sense, iter_limit=self.max_iter
        )
        force = numpy.asarray(info["lam"])[-r:] if r else numpy.zeros(0)
        return Answer(u, -force, int(info["iterations"]), VERDICTS.get(int(flag), Status.STALLED))
