"""SciPy's `minimize`: SLSQP, trust-constr and the unconstrained methods, with derivatives from torch."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from tacit.errors import OptionError, nearest
from tacit.problem import Status
from tacit.solvers.external._engine import Answer, Engine, Sample, require

__all__ = ["SciPy"]

CONSTRAINED = ("SLSQP", "trust-constr")
METHODS = (*CONSTRAINED, "BFGS", "L-BFGS-B", "Newton-CG", "trust-exact")
NEEDS_HESSIAN = ("trust-constr", "Newton-CG", "trust-exact")


@dataclass(frozen=True)
class SciPy(Engine):
    """`scipy.optimize.minimize`, sample by sample; `pip install tacit[scipy]`.

    Args:
        method: "SLSQP" and "trust-constr" take constraints; "BFGS", "L-BFGS-B", "Newton-CG", "trust-exact" do not.
    """

    method: str = "SLSQP"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise OptionError(
                f"SciPy(method=...) expects one of {', '.join(METHODS)}; received {self.method!r}."
                f"{nearest(str(self.method), METHODS)}"
            )
        super().__post_init__()

    def load(self) -> Any:
        return require("scipy.optimize", "'tacit[scipy]'", "SciPy")

    def answer(self, sample: Sample, start: Any) -> Answer:
        p, r = sample.instance.p, sample.instance.r
        if r and self.method not in CONSTRAINED:
            raise OptionError(
                f"SciPy(method={self.method!r}) expects a problem without constraints; received {r} rows. "
                "Use method='SLSQP' or 'trust-constr'."
            )
        arguments: dict[str, Any] = {"jac": sample.gradient, "method": self.method}
        if self.method in NEEDS_HESSIAN:
            arguments["hess"] = lambda u: sample.hessian(u, [0.0] * r)
        if r:
            arguments["constraints"] = self._constraints(sample, p, r)
        options: dict[str, float] = {"maxiter": self.max_iter}
        tight: dict[str, dict[str, float]] = {
            "SLSQP": {"ftol": 1e-13},
            "trust-constr": {"gtol": 1e-10, "xtol": 1e-13},
            "BFGS": {"gtol": 1e-9},
        }
        options |= tight.get(self.method, {})
        with warnings.catch_warnings():
            # What the engine has to say about a bad sample is said by its status.
            warnings.simplefilter("ignore")
            found = self.load().minimize(sample.objective, start, options=options, **arguments)
        ended = Status.MAX_ITERATIONS if found.nit >= self.max_iter else Status.CONVERGED
        return Answer(found.x, None, int(found.nit), ended)

    def _constraints(self, sample: Sample, p: int, r: int) -> list[Any]:
        if self.method == "SLSQP":
            rows: list[Any] = []
            if p:
                rows.append(
                    {"type": "eq", "fun": lambda u: sample.rows(u)[:p], "jac": lambda u: sample.jacobian(u)[:p]}
                )
            if r > p:
                rows.append(
                    {"type": "ineq", "fun": lambda u: -sample.rows(u)[p:], "jac": lambda u: -sample.jacobian(u)[p:]}
                )
            return rows
        lower = [0.0] * p + [-float("inf")] * (r - p)
        curvature = _Curvature(sample)
        return [self.load().NonlinearConstraint(sample.rows, lower, 0.0, jac=sample.jacobian, hess=curvature)]


class _Curvature:
    """The Hessian of v' rows."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    def __call__(self, u: Any, v: Any) -> Any:
        return self.sample.hessian(u, -v) - self.sample.hessian(u, 0.0 * v)
