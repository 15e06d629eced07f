"""Fixed points `y = F(x, y)`: plain iteration (Picard), or extrapolation from the last iterates (Anderson).

Anderson's method takes the affine combination of the last `memory` iterates whose residuals cancel best,

    min_a |sum_i a_i (F(u_i) - u_i)|,   sum_i a_i = 1,      u+ = sum_i a_i ((1 - beta) u_i + beta F(u_i)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from tacit.errors import OptionError, OptionTypeError, SolverError, nearest
from tacit.problem import Instance, Status
from tacit.shapes import Float, Int, Tensor
from tacit.solvers.base import RUNNING, Found, Progress, Solver, State, check_count, check_positive, drive, tolerance

__all__ = ["FixedPoint"]

METHODS = ("anderson", "picard")


@dataclass(frozen=True)
class FixedPoint(Solver):
    """Iterates a map. The problem is `objective=None` with the equality `F(x, u) - u = 0`; the map is read from it.

    Args:
        map: `map(*inputs of one sample, u) -> u`; None reads it from the equality, as `u + h(x, u)`.
        method: "anderson" or "picard".
        memory: iterates that Anderson's method combines.
        damping: the share of the step to F that is taken.
        tol: `|F(u) - u|` relative to max(1, |u|); None takes what the dtype allows.
        max_iter: steps allowed.
        callback: called with a `Progress` after every step.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> problem = Problem(objective=None, equality=lambda x, u: torch.cos(x * u) - u)
    >>> x = torch.ones(1, 1)
    >>> FixedPoint().solve(Instance.bind(problem, (x,), (0,), x), x).u
    tensor([[0.7391]])
    """

    map: Callable[..., Tensor] | None = None
    method: str = "anderson"
    memory: int = 5
    damping: float = 1.0
    tol: float | None = None
    max_iter: int = 500
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        if self.map is not None and not callable(self.map):
            raise OptionTypeError(
                f"FixedPoint(map=...) expects a function of one sample's inputs and u, or None; received "
                f"{type(self.map).__name__}. Write map=lambda x, u: ..."
            )
        if self.method not in METHODS:
            raise OptionError(
                f"FixedPoint(method=...) expects one of {', '.join(METHODS)}; received {self.method!r}."
                f"{nearest(str(self.method), METHODS)}"
            )
        check_positive(self, "tol", optional=True)
        check_positive(self, "damping")
        check_count(self, "memory")
        check_count(self, "max_iter")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        if self.map is None and (instance.p != instance.m or instance.q):
            raise SolverError(
                f"FixedPoint expects a problem of as many equality rows as unknowns, F(x, u) - u; received "
                f"{instance.p} equality rows, {instance.q} inequality rows and {instance.m} unknowns. Give map=..."
            )
        b, m = start.shape
        past = start.new_zeros(b, self.memory, m)
        state = _State(
            u=start.clone(),
            residual=start.new_full((b,), float("inf")),
            status=torch.full((b,), RUNNING, device=start.device),
            points=past,
            errors=past,
            kept=torch.zeros(b, dtype=torch.int64, device=start.device),
        )
        final, iterations = drive(instance, state, self._advance, self.max_iter, self.callback)
        return Found(final.u, start.new_zeros(b, instance.r), final.residual, iterations, final.status)

    def step(self, instance: Instance, u: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
        """One plain step, differentiable: `(1 - damping) u + damping F(x, u)`."""
        return u + self.damping * (self._image(instance, u) - u)

    def _image(self, instance: Instance, u: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
        function = self.map
        if function is None:
            return u + instance.rows(u)

        def sample(u: Tensor, *xs: Any) -> Tensor:
            return function(*xs, u.reshape(instance.shape)).reshape(-1)

        value: Tensor = instance.map(sample, u)
        return value

    def _advance(self, instance: Instance, state: _State) -> _State:
        tol = tolerance(self.tol, state.u.dtype)
        error = self._image(instance, state.u) - state.u
        finite = error.isfinite().all(-1)
        error = torch.where(finite[:, None], error, 0.0)
        residual = error.abs().amax(1) / state.u.abs().amax(1).clamp(min=1.0)
        points = torch.cat([state.points[:, 1:], state.u[:, None]], 1)
        errors = torch.cat([state.errors[:, 1:], error[:, None]], 1)
        kept = (state.kept + 1).clamp(max=self.memory)
        u = state.u + self.damping * error
        if self.method == "anderson" and self.memory > 1:
            u = self._combined(points, errors, kept)
        done = residual <= tol
        status = torch.where(done, int(Status.CONVERGED), state.status)
        status = torch.where(finite, status, int(Status.NONFINITE))
        # The point that is returned is the one whose residual was measured.
        u = torch.where((status == RUNNING)[:, None], u, state.u)
        residual = torch.where(finite, residual, float("inf"))
        return replace(state, u=u, residual=residual, status=status, points=points, errors=errors, kept=kept)

    def _combined(
        self, points: Float[Tensor, "b k m"], errors: Float[Tensor, "b k m"], kept: Int[Tensor, " b"]
    ) -> Float[Tensor, "b m"]:
        k = points.shape[1]
        real = torch.arange(k, device=kept.device) >= k - kept[:, None]
        E = torch.where(real[:, :, None], errors, 0.0)
        gram = E @ E.mT
        # Regularised relative to the newest residual, so that nearly dependent iterates cannot blow the weights up.
        shift = 1e-10 * gram.diagonal(dim1=1, dim2=2).amax(1) + torch.finfo(gram.dtype).tiny
        gram = gram + torch.diag_embed(torch.where(real, shift[:, None], 1.0))
        weights, _ = torch.linalg.solve_ex(gram, real.to(gram.dtype)[:, :, None])
        weights = weights / weights.sum(1, keepdim=True)
        combined = (weights * (points + self.damping * errors)).sum(1)
        plain = points[:, -1] + self.damping * errors[:, -1]
        return torch.where(combined.isfinite().all(-1, keepdim=True), combined, plain)


@dataclass(frozen=True)
class _State(State):
    """Adds: the last iterates, their residuals, and how many of them are real."""

    points: Float[Tensor, "b k m"]
    errors: Float[Tensor, "b k m"]
    kept: Int[Tensor, " b"]
