"""A declared problem that happens to be a quadratic program, solved as one."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.problem import Instance, Status
from tacit.shapes import Float, Tensor
from tacit.solvers.base import Found, Solver, check_count, check_positive, tolerance
from tacit.solvers.optimality import evaluate, residual
from tacit.solvers.quadratic import Program, solve_quadratic

__all__ = ["Quadratic"]


@dataclass(frozen=True)
class Quadratic(Solver):
    """For a convex quadratic objective and linear rows: reads the matrices off the derivatives at the start.

    An element that turns out not to be quadratic is left at a point whose residual is large, and is called STALLED.

    Args:
        tol: scaled residual to reach; None takes what the dtype allows.
        max_iter: steps allowed.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> problem = Problem(objective=lambda x, u: (u - x).square().sum(), inequality=lambda x, u: u - 1)
    >>> x = torch.tensor([[3.0, 0.5]])
    >>> Quadratic().solve(Instance.bind(problem, (x,), (0,), x), x).u
    tensor([[1.0000, 0.5000]])
    """

    tol: float | None = None
    max_iter: int = 50

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        check_count(self, "max_iter")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        tol, p = tolerance(self.tol, start.dtype), instance.p
        at = evaluate(instance, start, start.new_zeros(len(start), instance.r))
        q = at.f_Y - (at.H @ start[:, :, None]).squeeze(2)
        right = (at.A @ start[:, :, None]).squeeze(2) - at.rows
        program = Program(at.H, q, at.A[:, :p], right[:, :p], at.A[:, p:], right[:, p:])
        found = solve_quadratic(program, self.tol, self.max_iter)
        lam = -torch.cat([found.y, found.z], 1)
        error = residual(evaluate(instance, found.u, lam))
        converged = found.status == Status.CONVERGED
        status = torch.where(converged & (error > tol), int(Status.STALLED), found.status)
        u = torch.where((found.status == Status.NONFINITE)[:, None], start, found.u)
        return Found(u, lam, error, found.iterations, status)
