"""Several starts for problems with several minima: the best answer is kept, and ties go to the one nearest the start.

Without that rule a layer would jump between equal minima from one training step to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import OptionTypeError
from tacit.problem import Instance, Status
from tacit.shapes import Float, Tensor
from tacit.solvers.automatic import Automatic
from tacit.solvers.base import Found, Solver, check_count, check_positive

__all__ = ["MultiStart"]


@dataclass(frozen=True)
class MultiStart(Solver):
    """Runs a solver from several starts at once, as one larger batch.

    Args:
        solver: what to run; None takes the default solver.
        starts: how many; the first is the start itself.
        spread: how far the others lie, relative to max(1, |start|).
        sampler: `sampler(start (b, m), count) -> (b, count, m)` instead of the fixed low-discrepancy pattern.
        tie: objectives this close (relative) count as equal.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> two_wells = Problem(objective=lambda x, u: ((u.square() - 1).square() + x * u).sum())
    >>> x, start = torch.tensor([[0.1]]), torch.tensor([[0.9]])
    >>> MultiStart(spread=2.0).solve(Instance.bind(two_wells, (x,), (0,), start), start).u
    tensor([[-1.0123]])
    """

    solver: Solver | None = None
    starts: int = 8
    spread: float = 1.0
    sampler: Callable[[Tensor, int], Tensor] | None = None
    tie: float = 1e-6

    def __post_init__(self) -> None:
        if self.solver is not None and not isinstance(self.solver, Solver):
            raise OptionTypeError(
                f"MultiStart(solver=...) expects a tacit.solvers object or None; received {type(self.solver).__name__}."
                " Write solver=tacit.solvers.Newton()."
            )
        check_count(self, "starts")
        check_positive(self, "spread")
        check_positive(self, "tie")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        b, k, m = len(start), self.starts, start.shape[1]
        points = start[:, None] + self._offsets(start) if self.sampler is None else self.sampler(start, k)
        index = torch.arange(b, device=start.device).repeat_interleave(k)
        many = instance.take(index)
        found = (self.solver or Automatic(attempts=1)).solve(many, points.reshape(b * k, m))
        f = many.objective(found.u).reshape(b, k)
        converged = (found.status == Status.CONVERGED).reshape(b, k) & f.isfinite()
        f = torch.where(converged, f, float("inf"))
        least = f.amin(1, keepdim=True)
        near = (found.u.reshape(b, k, m) - start[:, None]).norm(dim=2)
        equal = converged & (f <= least + self.tie * (1 + least.abs()))
        # Where nothing converged, the run from the start itself speaks.
        choice = torch.where(equal, near, float("inf")).argmin(1)
        choice = torch.where(converged.any(1), choice, 0)
        place = torch.arange(b, device=start.device) * k + choice

        def pick(value: Any) -> Any:
            return None if value is None else value[place]

        steps = found.iterations.reshape(b, k).sum(1)
        return Found(pick(found.u), pick(found.lam), pick(found.residual), steps, pick(found.status))

    def _offsets(self, start: Float[Tensor, "b m"]) -> Float[Tensor, "b k m"]:
        """Zero first, then an additive recurrence that fills the cube evenly: deterministic, equal for every element."""
        k, m = self.starts, start.shape[1]
        # The positive root of x^(m+1) = x + 1 gives m jointly irrational increments.
        root = 2.0
        for _ in range(50):
            root = (1.0 + root) ** (1.0 / (m + 1))
        increments = torch.tensor([root ** -(j + 1) for j in range(m)], dtype=start.dtype, device=start.device)
        steps = torch.arange(k, dtype=start.dtype, device=start.device)[:, None]
        cube = 2 * torch.frac(0.5 + steps * increments) - 1
        return self.spread * start.abs().amax(1).clamp(min=1.0)[:, None, None] * cube
