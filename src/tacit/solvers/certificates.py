"""Proofs that a convex quadratic program has no answer, by Farkas' lemma.

    minimise 1/2 u'Qu + q'u   subject to   A u = b,   G u <= h

has no feasible point exactly if `A'y + G'z = 0, b'y + h'z = -1, z >= 0` has a solution, and, where it has feasible
points, no least value exactly if `Q v + A'y + G'z = -q, z >= 0` has none. Both are questions of what a least-squares
problem with signs leaves over: nothing, or something.
"""

from __future__ import annotations

import torch

from tacit.linalg.nnls import sign_constrained_least_squares
from tacit.shapes import Bool, Float, Tensor

__all__ = ["has_multipliers", "is_infeasible"]


def is_infeasible(
    A: Float[Tensor, "b p m"], b: Float[Tensor, "b p"], G: Float[Tensor, "b q m"], h: Float[Tensor, "b q"]
) -> Bool[Tensor, " b"]:
    """Whether no u has `A u = b` and `G u <= h`.

    >>> G, h = torch.tensor([[[1.0], [-1.0]]] * 2), torch.tensor([[0.0, -1.0], [1.0, -1.0]])
    >>> is_infeasible(G[:, :0], h[:, :0], G, h)  # u <= 0 and u >= 1; u <= 1 and u >= 1
    tensor([ True, False])
    """
    rows, right = torch.cat([A, G], 1), torch.cat([b, h], 1)
    if not rows.shape[1] or not rows.shape[0]:
        return torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    tiny = torch.finfo(rows.dtype).tiny
    length = rows.abs().amax(2)
    length = torch.where(length > 0, length, right.abs().clamp_min(tiny))  # a row without u is measured by itself
    rows, right = rows / length[:, :, None], right / length
    right = right / right.abs().amax(1, keepdim=True).clamp_min(tiny)  # as if u were in units of its own
    goal = torch.cat([torch.zeros_like(rows[:, 0]), -torch.ones_like(right[:, :1])], 1)
    stacked = torch.cat([rows, right[:, :, None]], 2)
    left = sign_constrained_least_squares(stacked, goal, _free(A, G), torch.ones_like(right, dtype=torch.bool))[1]
    # What is left over is (-u, 1) / (1 + |u|^2) of a feasible u: nothing, or much, unless all of them are far away.
    return left.abs().amax(1) <= 100 * torch.finfo(rows.dtype).eps ** 0.75


def has_multipliers(
    Q: Float[Tensor, "b m m"], q: Float[Tensor, "b m"], A: Float[Tensor, "b p m"], G: Float[Tensor, "b q m"]
) -> Bool[Tensor, " b"]:
    """Whether any v, y and z >= 0 have `Q v + q + A'y + G'z = 0`: else the objective falls forever along some ray.

    >>> Q, G = torch.zeros(2, 1, 1), torch.tensor([[[1.0]]] * 2)
    >>> has_multipliers(Q, torch.tensor([[-1.0], [1.0]]), G[:, :0], G)  # -u and u, where u <= h
    tensor([ True, False])
    """
    columns = torch.cat([Q, A, G], 1)
    free = torch.cat([torch.ones_like(Q[:, :, 0], dtype=torch.bool), _free(A, G)], 1)
    left = sign_constrained_least_squares(columns, -q, free, torch.ones_like(free))[1]
    return left.abs().amax(1) <= 1e3 * torch.finfo(q.dtype).eps ** 0.75 * q.abs().amax(1)


def _free(A: Tensor, G: Tensor) -> Bool[Tensor, "b r"]:
    """Multipliers of either sign: those of equalities."""
    return torch.arange(A.shape[1] + G.shape[1], device=A.device).expand(len(A), -1) < A.shape[1]
