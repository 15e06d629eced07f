"""The solver that `solver=None` stands for: a first look at the start, one method, and others where that one failed.

Every element goes its own way: what a stage answers leaves the batch, the rest goes on. So an ordinary batch costs one
method, and a warm start (the last answer, after a small change of the inputs) costs a few Newton steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from tacit.problem import Instance, Status
from tacit.shapes import Float, Int, Tensor
from tacit.solvers.base import Found, Progress, Solver, check_count, check_positive, tolerance
from tacit.solvers.interior_point import InteriorPoint
from tacit.solvers.newton import Newton
from tacit.solvers.optimality import evaluate, residual
from tacit.solvers.polish import multipliers, polish
from tacit.solvers.restoration import restore

__all__ = ["Automatic"]

RETRIED = (Status.MAX_ITERATIONS, Status.STALLED, Status.INFEASIBLE)
"""Verdicts that another method may overturn. What is unbounded or not finite stays so."""


@dataclass(frozen=True)
class Automatic(Solver):
    """Picks by what the problem has: Newton without constraints, an interior point with them, and second opinions.

    Args:
        tol: scaled residual to reach; None takes what the dtype allows.
        max_iter: steps allowed to each method.
        attempts: how many methods may be tried on an element; 1 takes no second opinion.
        callback: called with a `Progress` after every step of the first method.
    """

    tol: float | None = None
    max_iter: int = 400
    attempts: int = 4
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        check_count(self, "max_iter")
        check_count(self, "attempts")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        found = self._first_look(instance, start)
        for attempt, (method, origin) in enumerate(self._methods(instance, start)):
            if attempt == 0:
                again = found.status != Status.CONVERGED
            else:
                again = torch.isin(found.status, torch.tensor(RETRIED, device=start.device))
            index = again.nonzero().squeeze(1)
            if not len(index) or attempt == self.attempts:
                break
            new = method(instance.take(index), origin[index])
            found = found.replaced_at(index, _better(found, index, new, attempt == 0))
        return found

    def _first_look(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        """Newton steps on the optimality conditions from the start, kept where they end close by, at a minimum."""
        tol = tolerance(self.tol, start.dtype)
        at = evaluate(instance, start, start.new_zeros(len(start), instance.r))
        lam = multipliers(at, 1e-2) if instance.r else at.lam
        steps = min(8, self.max_iter)
        best = polish(instance, start, lam, steps)
        good = best.holds(tol)
        return Found(
            torch.where(good[:, None], best.u, start),
            best.lam,
            best.residual,
            torch.where(good, best.taken, 0),
            torch.where(good, int(Status.CONVERGED), int(Status.MAX_ITERATIONS)),
        )

    def _methods(
        self, instance: Instance, start: Float[Tensor, "b m"]
    ) -> Iterator[tuple[Callable[[Instance, Tensor], Found], Float[Tensor, "b m"]]]:
        """What to try, and from where."""
        # What the first method could not do in its steps, most others do in half of them or not at all.
        n, few, callback = self.max_iter, max(self.max_iter // 2, 1), self.callback
        aside, across = start + _spread(start, 0.1), start - _spread(start, 0.5)
        if not instance.has_objective:
            yield self._feasible, start
            yield self._feasible, aside
            yield self._feasible, across
            yield InteriorPoint(self.tol, few).solve, start
        elif instance.r:
            yield InteriorPoint(self.tol, n, callback=callback).solve, start
            yield self._from_feasible, start
            yield InteriorPoint(self.tol, few, barrier=1e-3).solve, aside
            yield InteriorPoint(self.tol, few).solve, across
        else:
            yield Newton(self.tol, n, callback=callback).solve, start
            yield Newton(self.tol, n, scaled=True).solve, start
            yield InteriorPoint(self.tol, few).solve, start
            yield Newton(self.tol, few).solve, aside

    def _from_feasible(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        """An interior point with hardly a barrier, from the nearest feasible point; without one that is the verdict.

        So it goes where the objective falls, however gently: the barrier's own push may lead away, and into a level region.
        """
        found = restore(instance, start, tol=self.tol, max_iter=self.max_iter)
        steps = max(self.max_iter // 2, 1)
        result = InteriorPoint(self.tol, steps, barrier=1e-5).solve(instance, found.u)
        lost = (result.status != Status.CONVERGED) & (found.status == Status.INFEASIBLE)
        return replace(result, status=torch.where(lost, int(Status.INFEASIBLE), result.status))

    def _feasible(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        """The feasible point that Gauss-Newton reaches from the start."""
        found = restore(instance, start, tol=self.tol, max_iter=self.max_iter)
        lam = start.new_zeros(len(start), instance.r)
        return Found(found.u, lam, residual(evaluate(instance, found.u, lam)), found.iterations, found.status)


def _better(found: Found, index: Int[Tensor, " k"], new: Found, first: bool) -> Found:
    """The new result where it converged or says more than the old one; the steps are those of both."""
    old = _take(found, index)
    # A problem that one method finds infeasible and no method solves is infeasible.
    take = (new.status == Status.CONVERGED) | (new.status == Status.INFEASIBLE)
    take = take | (old.status == Status.MAX_ITERATIONS) | first
    place = take.nonzero().squeeze(1)
    kept = old.replaced_at(place, _take(new, place))
    return replace(kept, iterations=old.iterations + new.iterations)


def _take(found: Found, index: Int[Tensor, " k"]) -> Found:
    lam = None if found.lam is None else found.lam[index]
    return Found(found.u[index], lam, found.residual[index], found.iterations[index], found.status[index])


def _spread(start: Float[Tensor, "b m"], size: float) -> Float[Tensor, "b m"]:
    """A fixed displacement of relative size `size`, without symmetry: the same for every call, no generator needed."""
    place = torch.arange(1, start.shape[1] + 1, dtype=start.dtype, device=start.device)
    pattern = 2 * torch.frac(place * 0.6180339887498949) - 1
    return size * start.abs().clamp(min=1.0) * pattern
