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
from tacit.solvers.lbfgs import LBFGS
from tacit.solvers.level import lower_beside
from tacit.solvers.newton import Newton
from tacit.solvers.optimality import evaluate, residual
from tacit.solvers.polish import multipliers, polish
from tacit.solvers.restoration import restore
from tacit.solvers.stray import SUSPICIOUS, strays

__all__ = ["Automatic"]

LARGE = 500
"""Unknowns from which on a problem without constraints is not asked for its Hessian at first."""

HUGE = 2000
"""Unknowns from which on it is never asked for it."""

RETRIED = (Status.MAX_ITERATIONS, Status.STALLED, Status.INFEASIBLE)
"""Verdicts that another method may overturn. What is unbounded or not finite stays so."""


@dataclass(frozen=True)
class Automatic(Solver):
    """Picks by what the problem has: Newton without constraints, an interior point with them, and second opinions.

    Without constraints and with more than 500 unknowns it is LBFGS, which forms no matrix.

    Args:
        tol: scaled residual to reach; None takes what the dtype allows.
        max_iter: steps allowed to each method; twice as many to the one for badly scaled unknowns, ten times to LBFGS.
        attempts: how many methods may be tried on an element; 1 takes no second opinion.
        callback: called with a `Progress` after every step of the first method.
    """

    tol: float | None = None
    max_iter: int = 300
    attempts: int = 4
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        check_count(self, "max_iter")
        check_count(self, "attempts")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        found = self._first_look(instance, start)
        doubtful = torch.zeros_like(found.status, dtype=torch.bool)
        for attempt, (method, origin) in enumerate(self._methods(instance, start)):
            if attempt == 0:
                again = found.status != Status.CONVERGED
            else:
                again = doubtful | torch.isin(found.status, torch.tensor(RETRIED, device=start.device))
            index = again.nonzero().squeeze(1)
            if not len(index) or attempt == self.attempts:
                break
            part = instance.take(index)
            new = method(part, origin[index])
            found = found.replaced_at(index, _better(part, found, index, new, attempt == 0))
            if instance.m <= LARGE or instance.r:
                left = strays(part, start[index], _take(found, index), SUSPICIOUS)
                doubtful = doubtful.index_copy(0, index, left)
        return found

    def _first_look(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        """Newton steps on the optimality conditions from the start, kept where they end close by, at a minimum."""
        tol = tolerance(self.tol, start.dtype)
        if not instance.r and instance.m > LARGE:
            return _unknown(start)
        at = evaluate(instance, start, start.new_zeros(len(start), instance.r))
        lam = multipliers(at, 1e-2) if instance.r else at.lam
        steps = min(8, self.max_iter)
        best = polish(instance, start, lam, steps)
        good = best.holds(tol)
        if not instance.r and instance.has_objective:
            good = good & ~lower_beside(instance, best.u)[0]
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
        elif instance.m > LARGE:
            yield LBFGS(self.tol, 10 * n, callback=callback).solve, start  # its steps cost a hundredth of Newton's
            if instance.m <= HUGE:
                yield Newton(self.tol, n).solve, start
            yield LBFGS(self.tol, 10 * n, memory=30).solve, aside
        else:
            yield Newton(self.tol, n, callback=callback).solve, start
            yield Newton(self.tol, 2 * n, scaled=True).solve, start  # bent, narrow valleys take it long
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


def _better(instance: Instance, found: Found, index: Int[Tensor, " k"], new: Found, first: bool) -> Found:
    """The new result where it converged or says more than the old one; the steps are those of both."""
    old = _take(found, index)
    # A problem that one method finds infeasible and no method solves is infeasible.
    take = (new.status == Status.CONVERGED) | (new.status == Status.INFEASIBLE)
    take = take | (old.status == Status.MAX_ITERATIONS) | first
    # Of two answers, one of them in doubt, the lower one.
    both = (new.status == Status.CONVERGED) & (instance.objective(new.u) < instance.objective(old.u))
    take = torch.where(old.status == Status.CONVERGED, both, take)
    place = take.nonzero().squeeze(1)
    kept = old.replaced_at(place, _take(new, place))
    return replace(kept, iterations=old.iterations + new.iterations)


def _unknown(start: Float[Tensor, "b m"]) -> Found:
    """Nothing tried yet."""
    blank = torch.zeros(len(start), dtype=torch.int64, device=start.device)
    far = start.new_full((len(start),), float("inf"))
    return Found(start, start.new_zeros(len(start), 0), far, blank, blank + int(Status.MAX_ITERATIONS))


def _take(found: Found, index: Int[Tensor, " k"]) -> Found:
    lam = None if found.lam is None else found.lam[index]
    return Found(found.u[index], lam, found.residual[index], found.iterations[index], found.status[index])


def _spread(start: Float[Tensor, "b m"], size: float) -> Float[Tensor, "b m"]:
    """A fixed displacement of relative size `size`, without symmetry: the same for every call, no generator needed."""
    place = torch.arange(1, start.shape[1] + 1, dtype=start.dtype, device=start.device)
    pattern = 2 * torch.frac(place * 0.6180339887498949) - 1
    return size * start.abs().clamp(min=1.0) * pattern
