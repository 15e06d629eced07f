"""Gradient descent with a fixed rate: the plainest solver, whose steps can be differentiated one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from tacit.errors import SolverError
from tacit.problem import Instance, Status
from tacit.shapes import Float, Tensor
from tacit.solvers.base import RUNNING, Found, Progress, Solver, State, check_count, check_positive, drive, tolerance

__all__ = ["GradientDescent"]


@dataclass(frozen=True)
class GradientDescent(Solver):
    """`u <- u - rate f_Y(u)`, for unconstrained problems; its `step` is what `tacit.Unrolled` differentiates.

    Args:
        rate: length of a step; below 2 / |H| for it to converge.
        tol: stop when a step moves no unknown by more than this, relative to the largest.
        max_iter: steps allowed.
        callback: called with a `Progress` after every step.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> problem = Problem(objective=lambda x, u: (u - x).square().sum())
    >>> x = torch.tensor([[1.0, 2.0]])
    >>> GradientDescent(rate=0.5).solve(Instance.bind(problem, (x,), (0,), torch.zeros(1, 2)), torch.zeros(1, 2)).u
    tensor([[1., 2.]])
    """

    rate: float = 0.1
    tol: float | None = None
    max_iter: int = 10_000
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        check_positive(self, "rate")
        check_positive(self, "tol", optional=True)
        check_count(self, "max_iter")

    def step(self, instance: Instance, u: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
        """One iteration in differentiable operations."""
        return u - self.rate * instance.gradient(u)

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        if instance.r:
            raise SolverError(
                f"GradientDescent expects a problem without constraints; received one with {instance.p} equality and "
                f"{instance.q} inequality rows. Use InteriorPoint, or leave the solver to be chosen."
            )
        tol = tolerance(self.tol, start.dtype)

        def advance(instance: Instance, state: State) -> State:
            u = self.step(instance, state.u)
            moved = (u - state.u).abs().amax(1) / u.abs().amax(1).clamp(min=1.0)
            status = torch.where(moved <= tol, int(Status.CONVERGED), RUNNING)
            return replace(
                state, u=u, residual=moved, status=torch.where(moved.isfinite(), status, int(Status.NONFINITE))
            )

        status = torch.full((len(start),), RUNNING, dtype=torch.int64, device=start.device)
        final, iterations = drive(
            instance,
            State(start, start.new_full((len(start),), float("inf")), status),
            advance,
            self.max_iter,
            self.callback,
        )
        return Found(final.u, start.new_zeros(len(start), 0), final.residual, iterations, final.status)
