"""What the engines of other projects have in common: sample by sample, in float64, and never believed unchecked.

An engine gets one sample at a time as numpy functions. What it returns is polished and judged by the same conditions as
everything else here: its own word counts only for "infeasible" and "unbounded".
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import MissingDependencyError
from tacit.problem import Instance, Status
from tacit.shapes import Float, Tensor
from tacit.solvers.base import Found, Solver, check_count, check_positive, tolerance
from tacit.solvers.optimality import evaluate
from tacit.solvers.polish import multipliers, polish

__all__ = ["Answer", "Engine", "QuadraticEngine", "Sample", "require"]


@dataclass(frozen=True)
class Answer:
    """One sample's answer: u (m,), multipliers of `L = f - lam' rows` or None, iterations, and the engine's verdict."""

    u: Any
    lam: Any = None
    iterations: int = 0
    status: Status = Status.CONVERGED


class Sample:
    """One sample of an instance as functions from numpy to numpy."""

    def __init__(self, instance: Instance, like: Tensor) -> None:
        self.instance, self.like = instance, like

    def tensor(self, v: Any) -> Tensor:
        """A numpy vector as a batch of one."""
        return torch.as_tensor(v, dtype=self.like.dtype, device=self.like.device).reshape(1, -1)

    def objective(self, u: Any) -> float:
        """f."""
        return float(self.instance.objective(self.tensor(u)))

    def gradient(self, u: Any) -> Any:
        """f_Y, (m,)."""
        return _numpy(self.instance.gradient(self.tensor(u)))

    def rows(self, u: Any) -> Any:
        """[h; g], (r,)."""
        return _numpy(self.instance.rows(self.tensor(u)))

    def jacobian(self, u: Any) -> Any:
        """A, (r, m)."""
        return _numpy(self.instance.jacobian(self.tensor(u)))

    def hessian(self, u: Any, lam: Any) -> Any:
        """H of `f - lam' rows`, (m, m)."""
        return _numpy(self.instance.hessian(self.tensor(u), self.tensor(lam)))


def _numpy(v: Tensor) -> Any:
    return v[0].double().cpu().numpy()


def require(module: str, extra: str, owner: str) -> Any:
    """Import an optional engine.

    Raises:
        MissingDependencyError: it is not installed; the message holds the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{owner} expects the package {module.split('.')[0]}; it is not installed. Run: pip install {extra}"
        ) from error


@dataclass(frozen=True)
class Engine(Solver):
    """An engine that takes one sample at a time.

    Args:
        tol: scaled residual that counts as converged after polishing; None takes what the dtype allows.
        max_iter: steps allowed to the engine.
        threads: samples solved at the same time; engines that hold Python's lock gain nothing from more than one.
    """

    tol: float | None = None
    max_iter: int = 500
    threads: int = 1

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        check_count(self, "max_iter")
        check_count(self, "threads")
        self.load()

    @abstractmethod
    def load(self) -> Any:
        """The engine's module, or MissingDependencyError."""

    @abstractmethod
    def answer(self, sample: Sample, start: Any) -> Answer:
        """Solve one sample from `start` (m,)."""

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        finite = self._finite(instance, start)
        samples = [Sample(instance.take(torch.tensor([i], device=start.device)), start) for i in range(len(start))]
        starts = start.double().cpu().numpy()

        def one(i: int) -> Answer:
            return self.answer(samples[i], starts[i]) if finite[i] else Answer(starts[i], status=Status.NONFINITE)

        if self.threads > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                answers = list(pool.map(one, range(len(start))))
        else:
            answers = [one(i) for i in range(len(start))]
        return self._judge(instance, start, answers)

    def _finite(self, instance: Instance, start: Float[Tensor, "b m"]) -> list[bool]:
        at = evaluate(instance, start, start.new_zeros(len(start), instance.r))
        ok = at.f.isfinite() & at.f_Y.isfinite().all(1) & at.rows.isfinite().all(1) & at.A.isfinite().all(-1).all(-1)
        flags: list[bool] = ok.tolist()
        return flags

    def _judge(self, instance: Instance, start: Float[Tensor, "b m"], answers: list[Answer]) -> Found:
        def column(values: list[Any], width: int) -> Tensor:
            rows = [torch.as_tensor(v, dtype=start.dtype, device=start.device).reshape(width) for v in values]
            return torch.stack(rows) if rows else start.new_zeros(0, width)

        u = column([a.u for a in answers], start.shape[1])
        guess = (
            multipliers(evaluate(instance, u, start.new_zeros(len(u), instance.r)), 1e-4) if instance.r else u[:, :0]
        )
        given = column([a.lam if a.lam is not None else [float("nan")] * instance.r for a in answers], instance.r)
        best = polish(instance, u, torch.where(given.isnan(), guess, given))
        claimed = torch.tensor([int(a.status) for a in answers], dtype=torch.int64, device=start.device)
        iterations = torch.tensor([a.iterations for a in answers], dtype=torch.int64, device=start.device)
        good = best.holds(tolerance(self.tol, start.dtype)) & (claimed != Status.NONFINITE)
        # An engine that claims success without the conditions holding has stalled.
        claimed = torch.where(claimed == Status.CONVERGED, int(Status.STALLED), claimed)
        status = torch.where(good, int(Status.CONVERGED), claimed)
        return Found(torch.where(best.u.isfinite(), best.u, start), best.lam, best.residual, iterations, status)


@dataclass(frozen=True)
class QuadraticEngine(Engine):
    """An engine for convex quadratic programs: the matrices are read off the derivatives at the start."""

    @abstractmethod
    def program(self, Q: Any, q: Any, A: Any, b: Any, G: Any, h: Any) -> Answer:
        """Minimise `u'Qu/2 + q'u` subject to `A u = b`, `G u <= h`."""

    def answer(self, sample: Sample, start: Any) -> Answer:
        p, r = sample.instance.p, sample.instance.r
        Q, A = sample.hessian(start, [0.0] * r), sample.jacobian(start)
        right = A @ start - sample.rows(start)
        return self.program(Q, sample.gradient(start) - Q @ start, A[:p], right[:p], A[p:], right[p:])
