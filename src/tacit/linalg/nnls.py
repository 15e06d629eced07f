"""Least squares in which some of the unknowns may not be negative, for a batch.

    minimise |A' mu - target|^2 + sum_i (penalty_i mu_i)^2   over the masked rows,   mu_i >= 0 unless free

by the active-set method of Lawson and Hanson. The passive rows (those with mu_i != 0 allowed) are independent all
along, so the answer is a basic solution also where rows are dependent. It starts from the plain least-squares solution,
which is the answer already at most points an optimiser returns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.linalg.rows import independent_rows
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["sign_constrained_least_squares"]


def sign_constrained_least_squares(
    A: Float[Tensor, "b r m"],
    target: Float[Tensor, "b m"],
    free: Bool[Tensor, "b r"],
    mask: Bool[Tensor, "b r"],
    penalty: Float[Tensor, "b r"] | None = None,
) -> tuple[Float[Tensor, "b r"], Float[Tensor, "b m"]]:
    """Return `mu` (b, r), zero outside the mask, and the residual `target - A' mu` (b, m).

    `free` marks the unknowns of either sign; `penalty` defaults to none. An element that is not finite gets `mu = 0`
    and a residual of zero.

    >>> A = torch.eye(2)[None]
    >>> mask = torch.tensor([[True, True]])
    >>> mu, residual = sign_constrained_least_squares(A, torch.tensor([[3.0, -4.0]]), ~mask, mask)
    >>> mu, residual
    (tensor([[3., 0.]]), tensor([[ 0., -4.]]))
    """
    b, r, m = A.shape
    A, target = A.detach(), target.detach()
    penalty = A.new_zeros(b, r) if penalty is None else penalty.detach()
    ok = A.isfinite().flatten(1).all(-1) & target.isfinite().all(-1) & penalty.isfinite().all(-1)
    A = torch.where(ok[:, None, None], A, 0.0)
    target = torch.where(ok[:, None], target, 0.0)
    penalty = torch.where(ok[:, None], penalty, 0.0)
    if b == 0 or r == 0 or m == 0:
        return A.new_zeros(b, r), target
    # Penalised, row i is the longer row (A_i, penalty_i e_i); all are taken to unit length, and so is the target.
    rows = torch.cat([A, torch.diag_embed(penalty)], -1) if bool((penalty != 0).any()) else A
    largest = rows.abs().amax(-1, keepdim=True)
    length = largest * torch.linalg.vector_norm(rows / torch.where(largest > 0, largest, 1.0), dim=-1, keepdim=True)
    usable = mask & (length[:, :, 0] > 0)
    length = torch.where(usable[:, :, None], length, 1.0)
    size = target.abs().amax(-1, keepdim=True)
    size = torch.where(size > 0, size, 1.0)
    goal = torch.cat([target / size, target.new_zeros(b, rows.shape[-1] - m)], -1)
    unit = torch.where(usable[:, :, None], rows / length, 0.0)
    mu = _lawson_hanson(unit, goal, free & usable, usable) / length[:, :, 0] * size
    return mu, target - (mu[:, None, :] @ torch.where(mask[:, :, None], A, 0.0))[:, 0]


@dataclass(frozen=True)
class _System:
    """Rows of unit length (b, r, n), the goal (b, n), which unknowns are free and which exist at all (b, r)."""

    rows: Float[Tensor, "b r n"]
    goal: Float[Tensor, "b n"]
    free: Bool[Tensor, "b r"]
    usable: Bool[Tensor, "b r"]

    def of(self, index: Int[Tensor, " c"]) -> _System:
        return _System(self.rows[index], self.goal[index], self.free[index], self.usable[index])


def _lawson_hanson(
    rows: Float[Tensor, "b r n"],
    goal: Float[Tensor, "b n"],
    free: Bool[Tensor, "b r"],
    usable: Bool[Tensor, "b r"],
) -> Float[Tensor, "b r"]:
    system = _System(rows, goal, free, usable)
    passive = _first_passive_set(system)
    x, _ = _least_squares(system, passive)
    # Rows that were tried since x last changed and did not help: chosen by rounding noise, not to be tried again.
    refused = torch.zeros_like(usable)
    left = torch.arange(rows.shape[0], device=rows.device)
    # Each step lowers the objective, so sets do not return; the limit only guards against rounding.
    for _ in range(4 * rows.shape[1] + 10):
        part = system.of(left)
        enter = _entering(part, passive[left], x[left], refused[left])
        unfinished = enter.any(-1)
        left, enter = left[unfinished], enter[unfinished]
        if left.numel() == 0:
            break
        part = system.of(left)
        tried, x_tried, helped = _exchange(part, passive[left], x[left], enter)
        passive[left] = torch.where(helped[:, None], tried, passive[left])
        x[left] = torch.where(helped[:, None], x_tried, x[left])
        refused[left] = torch.where(helped[:, None], False, refused[left] | enter)
    return x


def _first_passive_set(system: _System) -> Bool[Tensor, "b r"]:
    """Return an independent set whose least-squares solution has the right signs, by dropping those that have not."""
    passive = independent_rows(system.rows, system.usable, system.free)
    for _ in range(system.rows.shape[1] + 1):
        x, _ = _least_squares(system, passive)
        wrong = passive & ~system.free & (x <= 0)
        if not bool(wrong.any()):
            break
        passive = passive & ~wrong
    return passive


def _entering(
    system: _System, passive: Bool[Tensor, "b r"], x: Float[Tensor, "b r"], refused: Bool[Tensor, "b r"]
) -> Bool[Tensor, "b r"]:
    """Mark, one an element at most, the row outside the passive set along which the objective falls fastest."""
    residual = system.goal - (x[:, None, :] @ system.rows)[:, 0]
    slope = (system.rows @ residual[:, :, None])[:, :, 0]
    noise = 20 * torch.finfo(x.dtype).eps * (1 + x.abs().sum(-1, keepdim=True))
    # The free rows were in the first set as far as they are independent, and never leave it.
    open_ = system.usable & ~system.free & ~passive & ~refused & (slope > noise)
    best = torch.where(open_, slope, -1.0).argmax(-1, keepdim=True)
    return torch.zeros_like(open_).scatter(1, best, open_.gather(1, best))


def _exchange(
    system: _System, passive: Bool[Tensor, "b r"], x: Float[Tensor, "b r"], enter: Bool[Tensor, "b r"]
) -> tuple[Bool[Tensor, "b r"], Float[Tensor, "b r"], Bool[Tensor, " b"]]:
    """Let a row enter, and rows leave until the least-squares solution has the right signs.

    Returns the new passive set, its solution, and whether the exchange is worth having: not when the entering row
    depends on the others, or would itself get the wrong sign at once.
    """
    passive = passive | enter
    z, regular = _least_squares(system, passive)
    helped = regular & ((z > 0) | ~enter).all(-1)
    for _ in range(system.rows.shape[1] + 1):
        wrong = passive & ~system.free & (z <= 0) & helped[:, None]
        if not bool(wrong.any()):
            break
        # As far towards z as the signs allow; whatever reaches zero there leaves.
        step = torch.where(wrong, x / (x - z).clamp(min=torch.finfo(x.dtype).tiny), 1.0)
        length = step.amin(-1, keepdim=True)
        stuck = wrong.any(-1, keepdim=True)
        leaving = wrong & (step <= length)
        x = torch.where(stuck, (x + length * (z - x)) * passive, x)
        passive = passive & ~leaving
        x = x * passive
        z, _ = _least_squares(system, passive)
    return passive, z, helped


def _least_squares(system: _System, passive: Bool[Tensor, "b r"]) -> tuple[Float[Tensor, "b r"], Bool[Tensor, " b"]]:
    """Solve over the passive rows by orthogonal triangularisation, refined once; also, whether they are independent."""
    b, r = passive.shape
    P = passive.to(system.rows.dtype)
    # The rows left out are put as unit columns in coordinates of their own, so that every element has full rank.
    M = torch.cat([(system.rows * P[:, :, None]).mT, torch.diag_embed(1 - P)], -2)
    Q, R = torch.linalg.qr(M)
    goal = torch.cat([system.goal, system.goal.new_zeros(b, r)], -1)[:, :, None]
    diagonal = R.diagonal(dim1=-2, dim2=-1).abs()
    regular = diagonal.amin(-1) > torch.finfo(R.dtype).eps ** (2 / 3)
    R = torch.where(regular[:, None, None], R, torch.eye(r, dtype=R.dtype, device=R.device))
    x = torch.linalg.solve_triangular(R, Q.mT @ goal, upper=True)
    x = x + torch.linalg.solve_triangular(R, Q.mT @ (goal - M @ x), upper=True)
    return torch.where(regular[:, None], x[:, :, 0] * P, 0.0), regular
