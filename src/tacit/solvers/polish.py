"""Newton's method on the optimality conditions of the rows that look active: turns eight digits into all of them.

    [ H  A' ] [  d   ]     [ D_Y L  ]
    [ A  0  ] [-dlam ] = - [ rows   ]      over the active rows; an inactive row has lam = 0.

The active set is guessed anew at every step from slacks and multipliers. A singular system takes its least-norm
solution. Nothing globalises these steps: a point is kept only if its residual is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.linalg.equilibrate import equilibrate
from tacit.problem import Instance
from tacit.shapes import Bool, Float, Tensor
from tacit.solvers.linear import bordered, factor_symmetric, solve_or_least_norm
from tacit.solvers.optimality import Local, active_rows, evaluate, residual

__all__ = ["Polished", "is_minimum", "multipliers", "polish"]


CLOSE = 1e-7
"""A Newton step (relative to u) that is this short says that the answer is right to about twice as many digits."""


@dataclass(frozen=True)
class Polished:
    """The best point met, its multipliers and residual, the relative length of the Newton step from there, and whether
    curvature says minimum."""

    u: Float[Tensor, "b m"]
    lam: Float[Tensor, "b r"]
    residual: Float[Tensor, " b"]
    step: Float[Tensor, " b"]
    minimum: Bool[Tensor, " b"]

    def holds(self, tol: float) -> Bool[Tensor, " b"]:
        """Whether this is an answer: the conditions hold, and either Newton would not move or rounding is all there is.

        A small residual alone proves little where the problem is ill-conditioned.
        """
        noise = 64 * torch.finfo(self.u.dtype).eps
        near = (self.step <= max(CLOSE, 100 * noise)) | (self.residual <= noise)
        return (self.residual <= tol) & self.minimum & near


def polish(
    instance: Instance, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], steps: int = 12, reach: float = 0.1
) -> Polished:
    """Take up to `steps` Newton steps from `(u, lam)`, never farther than `reach` (relative), and keep the best point."""
    at, best, (next_u, next_lam) = _look(instance, u, lam)
    limit = reach * at.size
    index = torch.arange(len(u), device=u.device)
    lull = torch.zeros_like(index)
    for _ in range(steps):
        stay = best.residual[index].isfinite() & (best.residual[index] > 0) & (lull < 3)
        stay &= (next_u - u[index]).abs().amax(-1) <= limit[index]
        index, lull = index[stay], lull[stay]
        if not len(index):
            break
        _, new, (next_u, next_lam) = _look(instance.take(index), next_u[stay], next_lam[stay])
        before = best.residual[index]
        better = new.residual < before
        lull = torch.where(new.residual < 0.5 * before, 0, lull + 1)
        best = _keep(best, index[better], new, better)
    return best


def _look(
    instance: Instance, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]
) -> tuple[Local, Polished, tuple[Float[Tensor, "b m"], Float[Tensor, "b r"]]]:
    """Evaluate at a point: derivatives, verdict, and where Newton's method would go."""
    at = evaluate(instance, u, lam)
    u_next, lam_next = _step(at)
    length = (u_next - u).abs().amax(-1) / at.size
    return at, Polished(u, lam, residual(at), length, is_minimum(at)), (u_next, lam_next)


def _step(at: Local) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b r"]]:
    """The next point and multipliers."""
    m = at.u.shape[1]
    active = active_rows(at)
    A = torch.where(active[:, :, None], at.A, 0.0)
    K = bordered(at.H, A, (~active).to(at.A.dtype))
    kept = torch.where(active, at.lam, 0.0)
    v = torch.cat([-(at.f_Y - (kept[:, None, :] @ at.A).squeeze(1)), torch.where(active, -at.rows, 0.0)], 1)
    w = solve_or_least_norm(K, v)
    return at.u + w[:, :m], torch.where(active, kept - w[:, m:], 0.0)


def is_minimum(at: Local, slack: float = 1e-7) -> Bool[Tensor, " b"]:
    """Whether no direction along the active rows has negative curvature: K has one negative eigenvalue per row.

    Rows with a vanishing multiplier do not help here: they hold the point on one side only.
    """
    r, m = at.A.shape[1:]
    active = active_rows(at) & (_strength(at) > slack)
    A = torch.where(active[:, :, None], at.A, 0.0)
    K = bordered(at.H, A, torch.where(active, 0.0, -1.0).to(A.dtype))
    K = torch.where(K.isfinite().all(-1).all(-1)[:, None, None], K, 0.0)
    scale = equilibrate(K)
    K = scale[:, :, None] * K * scale[:, None, :]
    shift = torch.cat([A.new_full((m,), slack), A.new_full((r,), -(slack**1.5))])
    return factor_symmetric(K + torch.diag(shift)).negative == r


def _strength(at: Local) -> Float[Tensor, "b r"]:
    """Scaled size of each multiplier; infinite for equalities."""
    force = at.lam.abs() * at.A.abs().amax(-1) / at.pull.amax(-1, keepdim=True)
    return torch.cat([torch.full_like(force[:, : at.p], float("inf")), force[:, at.p :]], 1)


def multipliers(at: Local, near: float = 1e-6) -> Float[Tensor, "b r"]:
    """Least-squares multipliers of the rows that are active within `near`, wrong signs dropped one after another."""
    b, r, m = at.A.shape
    inequality = torch.arange(r, device=at.u.device) >= at.p
    active = ~inequality | (at.rows >= -near * at.row_size)
    lam = at.lam.new_zeros(b, r)
    eye = torch.eye(m, dtype=at.A.dtype, device=at.A.device).expand(b, m, m)
    for _ in range(r - at.p + 1):
        A = torch.where(active[:, :, None], at.A, 0.0)
        w = solve_or_least_norm(
            bordered(eye, A, (~active).to(A.dtype)), torch.cat([at.f_Y, torch.zeros_like(at.rows)], 1)
        )
        lam = torch.where(active, w[:, m:], 0.0)
        wrong = torch.where(inequality, lam * at.A.abs().amax(-1), 0.0)
        worst, place = wrong.max(-1, keepdim=True) if r else (wrong, wrong.long())
        drop = worst > 1e-12 * at.pull.amax(-1, keepdim=True)
        if not bool(drop.any()):
            break
        active = active & ~torch.zeros_like(active).scatter(1, place, drop)
    return torch.where(inequality, lam.clamp(max=0.0), lam)


def _keep(best: Polished, index: Tensor, new: Polished, mask: Bool[Tensor, " k"]) -> Polished:
    names = ("u", "lam", "residual", "step", "minimum")
    return Polished(*(getattr(best, k).index_copy(0, index, getattr(new, k)[mask]) for k in names))
