"""Limited-memory BFGS for many unknowns: no matrix of size m x m is ever formed.

The direction is `-B f_Y`, where B is built from the last pairs `s = u+ - u, t = f_Y+ - f_Y` by the two-loop recursion,
and the step satisfies the weak Wolfe conditions, found by bisection. Every element keeps pairs and steps of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from tacit.errors import SolverError
from tacit.problem import Instance, Status
from tacit.shapes import Bool, Float, Tensor
from tacit.solvers.base import RUNNING, Found, Progress, Solver, State, check_count, check_positive, drive, tolerance

__all__ = ["LBFGS"]

FAR = 1e12


@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS for unconstrained problems with many unknowns.

    Args:
        tol: largest gradient entry to reach, relative to the curvature times the size of u; None takes `eps^0.4`, about
            what differences of an objective can tell.
        max_iter: steps allowed.
        memory: pairs kept.
        line_search: trial points allowed to each step.
        callback: called with a `Progress` after every step.

    >>> import torch
    >>> from tacit.problem import Instance, Problem
    >>> problem = Problem(objective=lambda x, u: ((u - x).square() * torch.arange(1.0, 4.0)).sum())
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> LBFGS().solve(Instance.bind(problem, (x,), (0,), torch.zeros(1, 3)), torch.zeros(1, 3)).u.round(decimals=3)
    tensor([[1., 2., 3.]])
    """

    tol: float | None = None
    max_iter: int = 1000
    memory: int = 10
    line_search: int = 25
    callback: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        for name in ("max_iter", "memory", "line_search"):
            check_count(self, name)

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        if instance.r:
            raise SolverError(
                f"LBFGS expects a problem without constraints; received one with {instance.p} equality and "
                f"{instance.q} inequality rows. Use InteriorPoint, or leave the solver to be chosen."
            )
        b, m = start.shape
        f, g = instance.objective_and_gradient(start)
        finite = f.isfinite() & g.isfinite().all(-1)
        pairs = start.new_zeros(b, self.memory, m)
        blank = torch.zeros_like(f)
        state = _State(
            u=start.clone(),
            residual=torch.full_like(f, float("inf")),
            status=torch.where(finite, RUNNING, int(Status.NONFINITE)),
            f=f,
            g=g,
            s=pairs,
            t=pairs,
            curvature=blank,
            first=f,
        )
        final, iterations = drive(instance, state, self.advance, self.max_iter, self.callback)
        tol = tolerance(self.tol, start.dtype) ** (2 / 3 if self.tol is None else 1)
        held = (final.residual <= tol) & (final.status != Status.NONFINITE)
        status = torch.where(held, int(Status.CONVERGED), final.status)
        return Found(final.u, start.new_zeros(b, 0), final.residual, iterations, status)

    def advance(self, instance: Instance, state: _State) -> _State:
        """One step of every element."""
        d = _direction(state)
        slope = (d * state.g).sum(1)
        d = torch.where((slope < 0)[:, None], d, -state.g)
        slope = (d * state.g).sum(1)
        steep = state.g.abs().amax(1).clamp(min=torch.finfo(slope.dtype).tiny)
        alpha = torch.where(state.curvature > 0, 1.0, (1.0 / steep).clamp(max=1.0))
        u, f, g, moved, endless = self._wolfe(instance, state, d, slope, alpha)
        s, t = u - state.u, g - state.g
        st, ss = (s * t).sum(1), (s * s).sum(1)
        use = moved & (st > 1e-12 * ss.sqrt() * t.norm(dim=1))
        new_s = torch.where(use[:, None, None], torch.cat([state.s[:, 1:], s[:, None]], 1), state.s)
        new_t = torch.where(use[:, None, None], torch.cat([state.t[:, 1:], t[:, None]], 1), state.t)
        curvature = torch.where(use, (t * t).sum(1) / st, state.curvature)
        size = u.abs().amax(1).clamp(min=1.0)
        error = g.abs().amax(1) / (curvature * size).clamp(min=torch.finfo(f.dtype).tiny)
        error = torch.where(g.abs().amax(1) == 0, 0.0, error)
        status = torch.where(moved, state.status, int(Status.STALLED))
        exact = error <= tolerance(self.tol, f.dtype)
        status = torch.where(exact & (curvature > 0), int(Status.CONVERGED), status)
        fall = (state.first - f) / (1 + state.first.abs())
        far = (size > FAR) | (fall > FAR)
        unbounded = (far | endless) & (fall > 10.0) & (status == RUNNING)
        status = torch.where(unbounded, int(Status.UNBOUNDED), status)
        return replace(state, u=u, residual=error, status=status, f=f, g=g, s=new_s, t=new_t, curvature=curvature)

    def _wolfe(
        self, instance: Instance, state: _State, d: Tensor, slope: Float[Tensor, " b"], alpha: Float[Tensor, " b"]
    ) -> tuple[Tensor, Tensor, Tensor, Bool[Tensor, " b"], Bool[Tensor, " b"]]:
        """Bisect for `f(u + a d) <= f + 1e-4 a slope` and a slope there of at least 0.9 slope.

        Also says which elements moved, and for which every doubling of the step still fell as steeply.
        """
        noise = 10 * torch.finfo(slope.dtype).eps * state.f.abs()
        low, high = torch.zeros_like(alpha), torch.full_like(alpha, float("inf"))
        u, f, g, moved = state.u, state.f, state.g, torch.zeros_like(alpha, dtype=torch.bool)
        pending = slope < 0
        for _ in range(self.line_search):
            index = pending.nonzero().squeeze(1)
            if not len(index):
                break
            a = alpha[index]
            trial = state.u[index] + a[:, None] * d[index]
            value, gradient = instance.take(index).objective_and_gradient(trial)
            new_slope = (gradient * d[index]).sum(1)
            falls = (value <= state.f[index] + 1e-4 * a * slope[index] + noise[index]) & gradient.isfinite().all(1)
            flat = new_slope >= 0.9 * slope[index]
            good = index[falls]
            u, f = u.index_copy(0, good, trial[falls]), f.index_copy(0, good, value[falls])
            g, moved = g.index_copy(0, good, gradient[falls]), moved.index_fill(0, good, True)
            low = low.index_copy(0, index, torch.where(falls, a, low[index]))
            high = high.index_copy(0, index, torch.where(falls, high[index], a))
            pending = pending.index_fill(0, index[falls & flat], False)
            alpha = torch.where(high.isfinite(), 0.5 * (low + high), 2.0 * alpha)
        return u, f, g, moved, pending & moved & high.isinf()


@dataclass(frozen=True)
class _State(State):
    """Adds: objective, gradient, pairs, curvature along the last pair (0: none yet), first objective."""

    f: Float[Tensor, " b"]
    g: Float[Tensor, "b m"]
    s: Float[Tensor, "b k m"]
    t: Float[Tensor, "b k m"]
    curvature: Float[Tensor, " b"]
    first: Float[Tensor, " b"]


def _direction(state: _State) -> Float[Tensor, "b m"]:
    """-B f_Y by the two-loop recursion; empty slots of the memory hold zeros and drop out."""
    products = (state.s * state.t).sum(2)
    rho = torch.where(products > 0, 1.0 / products, 0.0)
    q, alphas = state.g, []
    for i in range(state.s.shape[1] - 1, -1, -1):
        alpha = rho[:, i] * (state.s[:, i] * q).sum(1)
        alphas.append(alpha)
        q = q - alpha[:, None] * state.t[:, i]
    q = q / torch.where(state.curvature > 0, state.curvature, 1.0)[:, None]
    for i, alpha in enumerate(reversed(alphas)):
        beta = rho[:, i] * (state.t[:, i] * q).sum(1)
        q = q + (alpha - beta)[:, None] * state.s[:, i]
    return -q
