"""IPOPT through ipyopt, whose wheels bring the engine along; exact Hessians from torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.problem import Status
from tacit.solvers.external._engine import Answer, Engine, Sample, require

__all__ = ["Ipopt"]

VERDICTS = {
    0: Status.CONVERGED,
    1: Status.CONVERGED,
    2: Status.INFEASIBLE,
    4: Status.UNBOUNDED,
    6: Status.CONVERGED,
    -1: Status.MAX_ITERATIONS,
}


@dataclass(frozen=True)
class Ipopt(Engine):
    """The interior point of Waechter and Biegler, sample by sample; `pip install ipyopt`."""

    def load(self) -> Any:
        return require("ipyopt", "ipyopt", "Ipopt")

    def answer(self, sample: Sample, start: Any) -> Answer:
        numpy = require("numpy", "numpy", "Ipopt")
        p, r, m = sample.instance.p, sample.instance.r, len(start)
        free, none = numpy.full(m, 2e19), numpy.zeros(r)

        def gradient(u: Any, out: Any) -> None:
            out[()] = sample.gradient(u)

        def rows(u: Any, out: Any) -> None:
            out[()] = sample.rows(u)

        def jacobian(u: Any, out: Any) -> None:
            out[()] = sample.jacobian(u).ravel()

        lower = numpy.tril_indices(m)

        def hessian(u: Any, force: Any, factor: float, out: Any) -> None:
            rows_only = sample.hessian(u, none)
            out[()] = (factor * rows_only + sample.hessian(u, -force) - rows_only)[lower]

        seen = [0]

        def count(*state: Any) -> bool:
            seen[0] = int(state[1])
            return True

        problem = self.load().Problem(
            m,
            -free,
            free,
            r,
            numpy.concatenate([numpy.zeros(p), numpy.full(r - p, -2e19)]),
            none,
            (numpy.repeat(numpy.arange(r), m), numpy.tile(numpy.arange(m), r)),
            lower,
            sample.objective,
            gradient,
            rows,
            jacobian,
            hessian,
            count,
            ipopt_options={"print_level": 0, "sb": "yes", "max_iter": self.max_iter, "tol": 1e-10},
        )
        force = numpy.zeros(r)
        u, _, code = problem.solve(numpy.array(start), mult_g=force)
        return Answer(u, -force, seen[0], VERDICTS.get(int(code), Status.STALLED))
