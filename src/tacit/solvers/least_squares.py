"""Gauss-Newton and Levenberg-Marquardt: the objective is half a sum of squares, `f(x, u) = 1/2 |rho(x, u)|^2`.

With J = D_Y rho each step solves `min 1/2 |rho + J d|^2` within a trust region whose radius follows how well the model
did (Levenberg-Marquardt), or takes the whole step, halved until f falls (Gauss-Newton). The singular value decomposition
of J keeps the condition number unsquared. Newton steps on the objective itself end the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.func import jacrev

from tacit.errors import OptionTypeError, SolverError
from tacit.problem import Instance, Status
from tacit.shapes import Float, Tensor
from tacit.solvers.base import RUNNING, Found, Progress, Solver, State, check_count, check_positive, drive, tolerance
from tacit.solvers.newton import trust_region_step
from tacit.solvers.polish import STEPS, polish
from tacit.solvers.stray import without_strays

__all__ = ["GaussNewton", "LevenbergMarquardt"]


@dataclass(frozen=True)
class LevenbergMarquardt(Solver):
    """Trust-region Gauss-Newton for least squares; the problem's objective is proportional to `|residuals|^2`.

    Args:
        residuals: `residuals(*inputs of one sample, u) -> (k,)`, as the objective is written.
        tol: scaled residual of the optimality conditions to reach; None takes what the dtype allows.
        max_iter: steps allowed, the last ones being Newton's.
        radius: first trust region, relative to max(1, |start|).
        callback: called with a `Progress` after every step.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> fit = lambda x, u: u[0] * torch.exp(u[1] * torch.arange(4.0)) - x
    >>> problem = Problem(objective=lambda x, u: fit(x, u).square().sum())
    >>> x = 2 * torch.exp(-0.5 * torch.arange(4.0))[None]
    >>> start = torch.ones(1, 2)
    >>> LevenbergMarquardt(residuals=fit).solve(Instance.bind(problem, (x,), (0,), start), start).u
    tensor([[ 2.0000, -0.5000]])
    """

    residuals: Callable[..., Tensor] = field(kw_only=True)
    tol: float | None = None
    max_iter: int = 200
    radius: float = 1.0
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        if not callable(self.residuals):
            raise OptionTypeError(
                f"{type(self).__name__}(residuals=...) expects a function of one sample's inputs and u that returns a "
                f"vector; received {type(self.residuals).__name__}. Write residuals=lambda x, u: ..."
            )
        check_positive(self, "tol", optional=True)
        check_positive(self, "radius")
        check_count(self, "max_iter")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        if instance.r:
            raise SolverError(
                f"{type(self).__name__} expects a problem without constraints; received one with {instance.r} rows. "
                "Use InteriorPoint, or leave the solver to be chosen."
            )
        tol = tolerance(self.tol, start.dtype)
        rho = self._evaluate(instance, start)
        finite = rho.isfinite().all(-1)
        state = _State(
            u=start.clone(),
            residual=torch.full_like(rho[:, 0], float("inf")),
            status=torch.where(finite, RUNNING, int(Status.NONFINITE)),
            radius=self.radius * start.abs().amax(-1).clamp(min=1.0),
            rho=rho,
        )
        most = self.max_iter - min(STEPS, self.max_iter // 4)  # the last steps are Newton's
        final, iterations = drive(instance, state, lambda i, s: self._advance(i, s, tol), most, self.callback)
        best = polish(instance, final.u, start.new_zeros(len(start), 0), left=self.max_iter - iterations)
        good = best.holds(tol) & (final.status != Status.NONFINITE)
        stopped = torch.where(final.status == Status.CONVERGED, int(Status.STALLED), final.status)
        status = torch.where(good, int(Status.CONVERGED), stopped)
        u = torch.where(best.residual.isfinite()[:, None], best.u, final.u)
        found = Found(u, best.lam, best.residual, iterations + best.taken, status)
        return without_strays(instance, start, found)

    def step(self, instance: Instance, u: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
        """One undamped Gauss-Newton step, differentiable: for unrolling close to the answer."""
        rho, J = self._evaluate(instance, u), self._jacobian(instance, u)
        eye = torch.eye(u.shape[1], dtype=u.dtype, device=u.device)
        normal = J.mT @ J
        shift = 10 * torch.finfo(u.dtype).eps * normal.diagonal(dim1=1, dim2=2).amax(1).detach()
        d, _ = torch.linalg.solve_ex(normal + shift[:, None, None] * eye, J.mT @ rho[:, :, None])
        return u - d.squeeze(2)

    def _sample(self, instance: Instance) -> Callable[..., Tensor]:
        def sample(u: Tensor, *xs: Any) -> Tensor:
            return self.residuals(*xs, u.reshape(instance.shape)).reshape(-1)

        return sample

    def _evaluate(self, instance: Instance, u: Float[Tensor, "b m"]) -> Float[Tensor, "b k"]:
        value: Tensor = instance.map(self._sample(instance), u)
        return value

    def _jacobian(self, instance: Instance, u: Float[Tensor, "b m"]) -> Float[Tensor, "b k m"]:
        value: Tensor = instance.map(jacrev(self._sample(instance)), u)
        return value

    def _advance(self, instance: Instance, state: _State, tol: float) -> _State:
        J = self._jacobian(instance, state.u)
        finite = J.isfinite().all(-1).all(-1)
        J = torch.where(finite[:, None, None], J, 0.0)
        _, s, Vt = torch.linalg.svd(J, full_matrices=False)
        pull = (J.mT @ state.rho[:, :, None]).squeeze(2)
        d, predicted = trust_region_step(s.flip(-1).square(), Vt.flip(-2).mT, pull, state.radius)
        trial = state.u + d
        rho = self._evaluate(instance, trial)
        now, then = state.rho.norm(dim=1), rho.norm(dim=1)
        ratio = 0.5 * (now - then) * (now + then) / predicted.clamp(min=torch.finfo(now.dtype).tiny)
        ratio = torch.where(rho.isfinite().all(-1), ratio, -1.0)
        accept = (ratio > 1e-4) & (then < now)
        length = d.norm(dim=1)
        radius = self._resize(state.radius, ratio, length)
        size = state.u.abs().amax(1).clamp(min=1.0)
        steep = (J.abs() * state.rho.abs()[:, :, None]).sum(1).amax(1)
        error = pull.abs().amax(1) / torch.maximum(steep, s[:, 0].square() * size).clamp(min=1e-300)
        done = (length <= 1e-3 * tol * size) | (now == 0) | ((error <= 1e-2 * tol) & ~accept)
        status = torch.where(done, int(Status.CONVERGED), state.status)
        status = torch.where(finite, status, int(Status.NONFINITE))
        move = (accept & finite)[:, None]
        return replace(
            state,
            u=torch.where(move, trial, state.u),
            rho=torch.where(move, rho, state.rho),
            residual=error,
            radius=radius,
            status=status,
        )

    def _resize(self, radius: Tensor, ratio: Tensor, length: Tensor) -> Float[Tensor, " b"]:
        wider = torch.where((ratio > 0.75) & (length > 0.9 * radius), 2.0 * radius, radius)
        return torch.where(ratio < 0.25, 0.25 * length, wider)


@dataclass(frozen=True)
class GaussNewton(LevenbergMarquardt):
    """Whole Gauss-Newton steps, shortened only where the sum of squares would rise."""

    radius: float = 1e8

    def _resize(self, radius: Tensor, ratio: Tensor, length: Tensor) -> Float[Tensor, " b"]:
        return torch.where(ratio > 1e-4, torch.full_like(radius, self.radius), 0.5 * length)


@dataclass(frozen=True)
class _State(State):
    """Adds: trust radius, residual vector."""

    radius: Float[Tensor, " b"]
    rho: Float[Tensor, "b k"]
