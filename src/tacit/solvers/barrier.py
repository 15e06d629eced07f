"""The linear algebra of an interior point: barrier errors, Newton directions with corrected inertia, step limits.

With slacks `g + s = 0, s > 0`, and multipliers y of the equalities and z > 0 of the inequalities in the Lagrangian
`f + y'h + z'(g + s) - mu sum log s` of the barrier problem, one direction solves

    [ H + delta I   A'           ] [ du     ]     [ f_Y + A'[y; z]  ]
    [ A            -diag(0, s/z) ] [ dy, dz ] = - [ h;  g + mu / z  ],     ds = mu/z - s - (s/z) dz.

`delta` is raised until the matrix has exactly m positive eigenvalues: then the direction descends.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.linalg.equilibrate import equilibrate
from tacit.shapes import Bool, Float, Tensor
from tacit.solvers.linear import Symmetric, bordered, factor_symmetric

__all__ = ["Direction", "Model", "barrier_errors", "largest_step", "new_direction"]


@dataclass(frozen=True)
class Model:
    """The scaled problem at a point, and the primal-dual variables there."""

    f_Y: Float[Tensor, "b m"]
    A: Float[Tensor, "b r m"]
    H: Float[Tensor, "b m m"]
    h: Float[Tensor, "b p"]
    g: Float[Tensor, "b q"]
    s: Float[Tensor, "b q"]
    y: Float[Tensor, "b p"]
    z: Float[Tensor, "b q"]

    @property
    def dual(self) -> Float[Tensor, "b m"]:
        """f_Y + A'[y; z]."""
        return self.f_Y + (torch.cat([self.y, self.z], 1)[:, None, :] @ self.A).squeeze(1)

    @property
    def primal(self) -> Float[Tensor, "b r"]:
        """[h; g + s]."""
        return torch.cat([self.h, self.g + self.s], 1)


@dataclass(frozen=True)
class Direction:
    """A Newton direction and the factored matrix it came from."""

    du: Float[Tensor, "b m"]
    ds: Float[Tensor, "b q"]
    dy: Float[Tensor, "b p"]
    dz: Float[Tensor, "b q"]
    delta: Float[Tensor, " b"]
    failed: Bool[Tensor, " b"]
    factored: Symmetric
    scale: Float[Tensor, "b N"]
    model: Model
    mu: Float[Tensor, " b"]

    def with_primal(self, c: Float[Tensor, "b r"]) -> Direction:
        """The direction that reduces the primal residual `c` instead of the model's own."""
        return _solve(self.model, self.mu, self.factored, self.scale, self.delta, self.failed, c)


def barrier_errors(at: Model, mu: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
    """The largest scaled residual of the barrier problem's conditions."""
    force = torch.cat([at.y.abs(), at.z], 1)
    r, q = max(force.shape[1], 1), max(at.z.shape[1], 1)
    dual_scale = (force.sum(1) / r).clamp(min=100.0) / 100.0
    slack_scale = (at.z.sum(1) / q).clamp(min=100.0) / 100.0
    dual = at.dual.abs().amax(1) / dual_scale
    products = (at.s * at.z - mu[:, None]).abs() / slack_scale[:, None]
    return torch.cat([dual[:, None], at.primal.abs(), products], 1).amax(1)


def largest_step(value: Float[Tensor, "b q"], change: Float[Tensor, "b q"], tau: Float[Tensor, " b"]) -> Tensor:
    """The largest alpha <= 1 with value + alpha change >= (1 - tau) value."""
    if not value.shape[1]:
        return torch.ones_like(tau)
    limit = torch.where(change < 0, -tau[:, None] * value / change, float("inf"))
    return limit.amin(1).clamp(max=1.0)


def new_direction(at: Model, mu: Float[Tensor, " b"], last: Float[Tensor, " b"]) -> Direction:
    """Factor with as little `delta` as gives the right inertia, then solve; `last` is the one last needed."""
    b, r, m = at.A.shape
    eps = torch.finfo(at.A.dtype).eps
    corner = torch.cat([torch.zeros_like(at.y), -at.s / at.z], 1)
    # Dependent rows make the matrix singular. A corner far below the scale of the rows decides that case and is
    # invisible in every other.
    K = bordered(at.H, at.A, corner)
    scale = equilibrate(K)
    K = scale[:, :, None] * K * scale[:, None, :]
    lower = torch.cat([K.new_zeros(m), K.new_full((r,), eps**0.6)])
    K = K - torch.diag(lower)
    curvature = at.H.abs().amax(-1).amax(-1).clamp(min=1e-4)
    delta = torch.zeros_like(last)
    upper = torch.cat([scale[:, :m].square(), scale.new_zeros(b, r)], 1)
    factored = factor_symmetric(K)
    wrong = (factored.negative != r) | factored.singular
    wrong &= K.isfinite().all(-1).all(-1)
    for attempt in range(25):
        if not bool(wrong.any()):
            break
        first = torch.where(last > 0, (last / 3.0).clamp(min=1e-12), 1e-4 * curvature)
        grow = torch.where(last > 0, 8.0, 50.0)
        delta = torch.where(wrong, first if attempt == 0 else delta * grow, delta)
        index = wrong.nonzero().squeeze(1)
        again = factor_symmetric(K[index] + torch.diag_embed(delta[index, None] * upper[index]))
        factored = Symmetric(
            factored.factors.index_copy(0, index, again.factors),
            factored.pivots.index_copy(0, index, again.pivots),
            factored.negative.index_copy(0, index, again.negative),
            factored.singular.index_copy(0, index, again.singular),
        )
        wrong = wrong.index_copy(0, index, (again.negative != r) | again.singular)
    failed = wrong | factored.singular
    return _solve(at, mu, factored, scale, delta, failed, at.primal)


def _solve(
    at: Model,
    mu: Float[Tensor, " b"],
    factored: Symmetric,
    scale: Float[Tensor, "b N"],
    delta: Float[Tensor, " b"],
    failed: Bool[Tensor, " b"],
    c: Float[Tensor, "b r"],
) -> Direction:
    m, p = at.H.shape[1], at.h.shape[1]
    target = mu[:, None] / at.z
    v = torch.cat([-at.dual, -c[:, :p], -(c[:, p:] - at.s + target)], 1)
    w = scale * factored.solve(scale * v)
    du, dy, dz = w[:, :m], w[:, m : m + p], w[:, m + p :]
    ds = target - at.s - at.s / at.z * dz
    failed = failed | ~w.isfinite().all(-1)
    return Direction(du, ds, dy, dz, delta, failed, factored, scale, at, mu)
