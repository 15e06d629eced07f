"""How far a point is from optimal, in numbers without units.

The conditions of first order for `min f s.t. h = 0, g <= 0` with `L = f - lam' [h; g]` are

    D_Y L = 0,   h = 0,   g <= 0,   lam_g <= 0,   lam_g g = 0.

Each is divided by the size of the terms that cancel in it *at this point*: a gradient by the curvature times the size
of u, a row by its slope times the size of u. So the measure does not change when f or a row is multiplied by a
constant, and a function that merely levels off (exp(-u)) never looks stationary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.problem import Instance
from tacit.shapes import Bool, Float, Tensor

__all__ = ["Local", "active_rows", "evaluate", "forces", "residual"]


@dataclass(frozen=True)
class Local:
    """A problem's derivatives at `u`, the Hessian being that of the Lagrangian with the multipliers `lam`."""

    u: Float[Tensor, "b m"]
    lam: Float[Tensor, "b r"]
    f: Float[Tensor, " b"]
    f_Y: Float[Tensor, "b m"]
    rows: Float[Tensor, "b r"]
    A: Float[Tensor, "b r m"]
    H: Float[Tensor, "b m m"]
    p: int

    @property
    def size(self) -> Float[Tensor, " b"]:
        """The size of u that errors are compared with: its largest entry, at least 1."""
        return self.u.abs().amax(-1).clamp(min=1.0)

    @property
    def row_size(self) -> Float[Tensor, "b r"]:
        """How much each row changes when u changes by its size."""
        return self.A.abs().amax(-1) * self.size[:, None]

    @property
    def pull(self) -> Float[Tensor, "b m"]:
        """The size of the terms that cancel in each entry of the Lagrangian's gradient."""
        forces = (self.lam[:, :, None] * self.A).abs().sum(1)
        pull = torch.maximum(torch.maximum(self.f_Y.abs(), forces), self.H.abs().sum(-1) * self.size[:, None])
        # Where an entry's own terms vanish (a flat direction), the rounding of the others is what can be reached.
        return torch.maximum(pull, torch.finfo(pull.dtype).eps ** 0.3 * pull.amax(-1, keepdim=True))

    @property
    def stationarity(self) -> Float[Tensor, "b m"]:
        """D_Y L = f_Y - lam' A."""
        return self.f_Y - (self.lam[:, None, :] @ self.A).squeeze(1)


def evaluate(instance: Instance, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]) -> Local:
    """Evaluate everything up to second order."""
    f, f_Y = instance.objective_and_gradient(u)
    return Local(u, lam, f, f_Y, instance.rows(u), instance.jacobian(u), instance.hessian(u, lam), instance.p)


def residual(at: Local) -> Float[Tensor, " b"]:
    """The largest scaled violation of the first-order conditions; infinite where something is not finite."""
    parts = [_ratio(at.stationarity.abs(), at.pull)]
    if at.rows.shape[1]:
        h, g = at.rows[:, : at.p], at.rows[:, at.p :]
        parts.append(_ratio(torch.cat([h.abs(), g.clamp(min=0.0)], 1), at.row_size))
        force, slack = _complementary(at)
        parts += [torch.minimum(force, slack).abs(), (-force).clamp(min=0.0)]
    finite = at.f.isfinite() & at.H.isfinite().all(-1).all(-1)
    worst = torch.cat(parts, 1).nan_to_num(nan=float("inf")).amax(1)
    return torch.where(finite, worst, float("inf"))


def active_rows(at: Local) -> Bool[Tensor, "b r"]:
    """Every equality, and the inequalities whose multiplier outweighs their slack."""
    force, slack = _complementary(at)
    return torch.cat([torch.ones_like(at.rows[:, : at.p], dtype=torch.bool), force > slack], 1)


def forces(at: Local) -> Float[Tensor, "b q"]:
    """Scaled multipliers of the inequalities, non-negative when right: each row's share in what pulls at an unknown.

    The largest share counts, so that the units of the unknowns do not matter.
    """
    lam = at.lam[:, at.p :]
    share = _ratio((lam[:, :, None] * at.A[:, at.p :]).abs(), at.pull[:, None, :])
    return -lam.sign() * share.amax(-1)


def _complementary(at: Local) -> tuple[Float[Tensor, "b q"], Float[Tensor, "b q"]]:
    """Scaled multipliers (non-negative when right) and scaled slacks of the inequalities."""
    return forces(at), _ratio(-at.rows[:, at.p :], at.row_size[:, at.p :])


def _ratio(value: Tensor, scale: Tensor) -> Tensor:
    """value / scale, and 0 for 0 / 0."""
    return torch.where(value == 0, value.abs(), value / scale)
