"""A record of a search, iteration by iteration: objective, residual and step of every sample."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tacit.errors import MissingDependencyError, OptionError
from tacit.problem import Instance
from tacit.shapes import Float, Tensor
from tacit.solvers.automatic import Automatic
from tacit.solvers.base import Found, Progress, Solver

__all__ = ["Trace", "trace"]


@dataclass
class Trace:
    """What happened in every iteration; NaN where a sample was finished already.

    Attributes:
        found: the result of the search.
        objective, residual, step: `(iterations, b)`; the step is the largest change of an unknown.
    """

    found: Found
    objective: Float[Tensor, "n b"]
    residual: Float[Tensor, "n b"]
    step: Float[Tensor, "n b"]

    def plot(self, sample: int | None = None) -> Any:
        """Draw residual and step against the iteration for one sample, or the residual of all; return the figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingDependencyError(
                "Trace.plot expects matplotlib; it is not installed. Run: pip install matplotlib"
            ) from error
        figure = Figure()
        axes = figure.add_subplot()
        if sample is None:
            axes.semilogy(self.residual.cpu().numpy(), alpha=0.6)
            axes.set_ylabel("residual")
        else:
            axes.semilogy(self.residual[:, sample].cpu().numpy(), label="residual")
            axes.semilogy(self.step[:, sample].cpu().numpy(), label="step")
            axes.legend()
        axes.set_xlabel("iteration")
        return figure


@dataclass
class _Recorder:
    batch: int
    rows: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)
    last: Tensor | None = None

    def __call__(self, progress: Progress) -> None:
        full = progress.u.new_full((self.batch,), float("nan"))
        if self.last is None or progress.iteration == 0:
            self.last = progress.u.new_zeros(self.batch, progress.u.shape[1]).index_copy(
                0, progress.samples, progress.u
            )
        step = (progress.u - self.last[progress.samples]).abs().amax(1)
        self.last = self.last.index_copy(0, progress.samples, progress.u)
        values = (progress.objective, progress.residual, step)
        self.rows.append(tuple(full.index_copy(0, progress.samples, v) for v in values))  # type: ignore[arg-type]


def trace(instance: Instance, start: Float[Tensor, "b m"], solver: Solver | None = None) -> Trace:
    """Run a solver that takes a callback and keep every iteration.

    Raises:
        OptionError: the solver has no iterations to look at.

    >>> import torch
    >>> from tacit.problem import Problem
    >>> problem = Problem(objective=lambda x, u: (u - x).square().sum())
    >>> x = torch.ones(2, 3)
    >>> record = trace(Instance.bind(problem, (x,), (0,), 0 * x), 0 * x)
    >>> record.objective.shape[1]
    2
    """
    solver = Automatic() if solver is None else solver
    if not hasattr(solver, "callback"):
        raise OptionError(
            f"trace(solver=...) expects a solver with a callback option; received {type(solver).__name__}, which has "
            "no iterations to look at. Use Newton, InteriorPoint, LBFGS, LevenbergMarquardt or FixedPoint."
        )
    recorder = _Recorder(instance.batch)
    found = replace(solver, callback=recorder).solve(instance, start)  # type: ignore[type-var]
    empty = start.new_zeros(0, instance.batch)
    columns = [torch.stack(list(c)) if recorder.rows else empty for c in zip(*recorder.rows, strict=True)] or [
        empty
    ] * 3
    return Trace(found, *columns)
