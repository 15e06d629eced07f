"""A formula for the answer, written for one sample like the objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from tacit.errors import OptionTypeError
from tacit.problem import Instance, Status
from tacit.shapes import Float, Tensor
from tacit.solvers.base import Found, Solver, check_positive, tolerance
from tacit.solvers.optimality import evaluate, residual
from tacit.solvers.polish import multipliers

__all__ = ["ClosedForm"]


@dataclass(frozen=True)
class ClosedForm(Solver):
    """Evaluates `formula(*inputs of one sample) -> u` for the batch, and checks the optimality conditions there.

    Args:
        formula: the answer, of u's shape.
        tol: scaled residual that counts as converged; None takes what the dtype allows.
        check: with False every finite answer counts as converged, for objectives with kinks.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> problem = Problem(objective=lambda x, u: (u - x).square().sum())
    >>> x = torch.tensor([[1.0, 2.0]])
    >>> ClosedForm(formula=lambda x: 1.0 * x).solve(Instance.bind(problem, (x,), (0,), x), x).u
    tensor([[1., 2.]])
    """

    formula: Callable[..., Tensor] = field(kw_only=True)
    tol: float | None = None
    check: bool = True

    def __post_init__(self) -> None:
        if not callable(self.formula):
            raise OptionTypeError(
                f"ClosedForm(formula=...) expects a function of one sample's inputs; received "
                f"{type(self.formula).__name__}. Write formula=lambda x: ..."
            )
        check_positive(self, "tol", optional=True)

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        def sample(like: Tensor, *xs: Any) -> Tensor:
            return self.formula(*xs).reshape(like.shape)

        u: Tensor = instance.map(sample, start)
        at = evaluate(instance, u, u.new_zeros(len(u), instance.r))
        at = evaluate(instance, u, multipliers(at)) if instance.r else at
        error = residual(at)
        finite = u.isfinite().all(-1)
        good = finite & (error <= tolerance(self.tol, u.dtype)) if self.check else finite
        status = torch.where(good, int(Status.CONVERGED), int(Status.STALLED))
        status = torch.where(finite, status, int(Status.NONFINITE))
        return Found(u, at.lam, error, torch.zeros_like(status), status)
