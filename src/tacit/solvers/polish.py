"""Newton's method on the optimality conditions of the rows that look active: turns eight digits into all of them.

    [ H  A' ] [  d   ]     [ D_Y L  ]
    [ A  0  ] [-dlam ] = - [ rows   ]      over the active rows; an inactive row has lam = 0.

The active set is guessed anew at every step from slacks and multipliers. A singular system takes its least-norm
solution. Nothing globalises these steps: a point is kept only if its residual is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from tacit.linalg.equilibrate import equilibrate
from tacit.linalg.nnls import sign_constrained_least_squares
from tacit.problem import Instance
from tacit.shapes import Bool, Float, Int, Tensor
from tacit.solvers.linear import bordered, factor_symmetric, solve_or_least_norm
from tacit.solvers.optimality import Local, active_rows, evaluate, forces, residual

__all__ = ["STEPS", "Polished", "hardly_moves", "is_minimum", "multipliers", "polish", "relative_length"]


CLOSE = 1e-7
"""A Newton step (relative to u) that is this short says that the answer is right to about twice as many digits."""

STEPS = 12
"""How many steps a polish may take: it starts close, where two or three are enough."""


@dataclass(frozen=True)
class Polished:
    """The best point met, its multipliers and residual, the relative length of the Newton step from there, whether
    curvature says minimum, and how many steps were taken."""

    u: Float[Tensor, "b m"]
    lam: Float[Tensor, "b r"]
    residual: Float[Tensor, " b"]
    step: Float[Tensor, " b"]
    minimum: Bool[Tensor, " b"]
    taken: Int[Tensor, " b"]

    def holds(self, tol: float) -> Bool[Tensor, " b"]:
        """Whether this is an answer: the conditions hold, Newton would hardly move, and curvature says minimum."""
        return (self.residual <= tol) & self.minimum & hardly_moves(self.residual, self.step)


def hardly_moves(residual: Float[Tensor, " b"], step: Float[Tensor, " b"]) -> Bool[Tensor, " b"]:
    """Whether Newton's step is negligible, or as short as rounding allows.

    A small residual alone proves little: where a problem is ill-conditioned it goes with a large error, and where a
    function levels off with no solution at all.
    """
    eps = torch.finfo(step.dtype).eps
    return (step <= max(CLOSE, 1e3 * eps)) | ((residual <= eps) & (step <= max(1e-6, 1e5 * eps)))


def relative_length(d: Float[Tensor, "b m"], u: Float[Tensor, "b m"]) -> Float[Tensor, " b"]:
    """The largest entry of a step, each relative to its unknown (or to a thousandth of the largest unknown)."""
    size = u.abs().amax(-1, keepdim=True)
    return (d.abs() / torch.maximum(u.abs(), (1e-3 * size).clamp(min=1e-3))).amax(-1)


def polish(
    instance: Instance,
    u: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    steps: int = STEPS,
    reach: float = 0.1,
    left: Int[Tensor, " b"] | None = None,
) -> Polished:
    """Take up to `steps` Newton steps from `(u, lam)`, never beyond `reach` (relative); keep the best point.

    `left` bounds the steps of each element; with none left this only looks at the point.
    """
    lam = _of_active_rows(instance, u, lam)
    at, best, (next_u, next_lam) = _look(instance, u, lam)
    limit = reach * at.size
    index = torch.arange(len(u), device=u.device)
    lull, taken = torch.zeros_like(index), torch.zeros_like(index)
    left = torch.full_like(index, steps) if left is None else left.clamp(max=steps)
    for _ in range(steps):
        stay = (left > taken)[index]
        stay &= best.residual[index].isfinite() & (best.residual[index] > 0) & (lull < 3)
        stay &= (next_u - u[index]).abs().amax(-1) <= limit[index]
        index, lull = index[stay], lull[stay]
        if not len(index):
            break
        taken[index] += 1
        _, new, (next_u, next_lam) = _look(instance.take(index), next_u[stay], next_lam[stay])
        before = best.residual[index]
        better = new.residual < before
        lull = torch.where(new.residual < 0.5 * before, 0, lull + 1)
        best = _keep(best, index[better], new, better)
    return replace(best, taken=taken)


def _of_active_rows(instance: Instance, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]) -> Float[Tensor, "b r"]:
    """Zero instead of what a barrier leaves to inactive rows: to a level direction its curvature is a lot."""
    if not instance.q:
        return lam
    return torch.where(active_rows(evaluate(instance, u, lam)), lam, 0.0)


def _look(
    instance: Instance, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]
) -> tuple[Local, Polished, tuple[Float[Tensor, "b m"], Float[Tensor, "b r"]]]:
    """Evaluate at a point: derivatives, verdict, and where Newton's method would go."""
    at = evaluate(instance, u, lam)
    u_next, lam_next = _step(at)
    length = relative_length(u_next - u, u)
    taken = torch.zeros_like(length, dtype=torch.int64)
    return at, Polished(u, lam, residual(at), length, is_minimum(at), taken), (u_next, lam_next)


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


def is_minimum(at: Local) -> Bool[Tensor, " b"]:
    """Whether no direction along the active rows has negative curvature: K has one negative eigenvalue per row.

    Rows with a vanishing multiplier do not help here: they hold the point on one side only.
    """
    r, m = at.A.shape[1:]
    eps = torch.finfo(at.A.dtype).eps
    active = active_rows(at) & (_strength(at) > eps**0.45)
    A = torch.where(active[:, :, None], at.A, 0.0)
    K = bordered(at.H, A, torch.where(active, 0.0, -1.0).to(A.dtype))
    K = torch.where(K.isfinite().all(-1).all(-1)[:, None, None], K, 0.0)
    scale = equilibrate(K)
    K = scale[:, :, None] * K * scale[:, None, :]
    # Level directions and dependent rows are let pass: both shifts are beyond the rounding of K and far below one.
    shift = torch.cat([A.new_full((m,), eps**0.45), A.new_full((r,), -(eps**0.65))])
    return factor_symmetric(K + torch.diag(shift)).negative == r


def _strength(at: Local) -> Float[Tensor, "b r"]:
    """Scaled size of each multiplier; infinite for equalities."""
    return torch.cat([torch.full_like(at.lam[:, : at.p], float("inf")), forces(at).abs()], 1)


def multipliers(at: Local, near: float = 1e-6) -> Float[Tensor, "b r"]:
    """Least-squares multipliers of the rows that are active within `near`, of the right sign."""
    equality = (torch.arange(at.rows.shape[1], device=at.u.device) < at.p).expand_as(at.rows)
    active = equality | (at.rows >= -near * at.row_size)
    return -sign_constrained_least_squares(at.A, -at.f_Y, equality, active)[0]


def _keep(best: Polished, index: Tensor, new: Polished, mask: Bool[Tensor, " k"]) -> Polished:
    names = ("u", "lam", "residual", "step", "minimum")
    return replace(best, **{k: getattr(best, k).index_copy(0, index, getattr(new, k)[mask]) for k in names})
