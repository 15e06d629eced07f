"""DDN[nonregular] Section 4.7.3, "Non-regular solutions": dependent rows, more active rows than unknowns, tangent constraints.

    p + q > m, rank A = m        the rows alone determine Dy: A Dy = -C, which must be consistent, rank [A C] = rank A
    rank A < p + q               remove dependent rows, with lam_i = 0 for them; or a pseudo-inverse

Multipliers are then not unique, and they enter H: two admissible choices may give two derivatives. The library takes
sign-feasible ones and flags the sample as DEPENDENT.
"""

from __future__ import annotations

import torch

from tacit.implicit.feasibility import feasibility
from tacit.implicit.inequality import inequality
from tacit.linalg import independent_rows, minimum_norm_map
from tacit.shapes import Bool, Float, Tensor

__all__ = ["is_consistent", "overdetermined", "pseudo_inverse", "reduced"]


def is_consistent(A: Float[Tensor, "b r m"], C: Float[Tensor, "b r n"], tol: float | None = None) -> Bool[Tensor, " b"]:
    """Whether `A Dy = -C` has a solution: rank [A C] = rank A.

    >>> A = torch.ones(2, 2, 1)
    >>> is_consistent(A, torch.tensor([[[1.0], [1.0]], [[1.0], [2.0]]]))
    tensor([ True, False])
    """
    every = torch.ones(A.shape[:2], dtype=torch.bool, device=A.device)
    kept = independent_rows(A, every, tol=tol)
    return independent_rows(torch.cat([A, C], dim=2), every, first=kept, tol=tol).sum(1) == kept.sum(1)


def overdetermined(A: Float[Tensor, "b r m"], C: Float[Tensor, "b r n"]) -> Float[Tensor, "b m n"]:
    """Dy from `A Dy = -C` alone, for rank A = m < r; the least-squares compromise where the rows contradict each other.

    >>> overdetermined(torch.ones(1, 2, 1), -torch.ones(1, 2, 1))
    tensor([[[1.]]])
    """
    return feasibility(A, C)


def reduced(
    H: Float[Tensor, "b m m"],
    A: Float[Tensor, "b r m"],
    B: Float[Tensor, "b m n"],
    C: Float[Tensor, "b r n"],
    active: Bool[Tensor, "b r"],
) -> tuple[Float[Tensor, "b m n"], Bool[Tensor, "b r"]]:
    """Dy with dependent rows removed, and the rows that stayed; H and B made with lam_i = 0 for the others.

    >>> H, A = torch.eye(2)[None], torch.ones(1, 2, 2)
    >>> Dy, kept = reduced(H, A, torch.zeros(1, 2, 1), -torch.ones(1, 2, 1), torch.tensor([[True, True]]))
    >>> Dy.flatten(), kept
    (tensor([0.5000, 0.5000]), tensor([[ True, False]]))
    """
    kept = independent_rows(A, active)
    return inequality(H, A, B, C, kept), kept


def pseudo_inverse(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b r m"], B: Float[Tensor, "b m n"], C: Float[Tensor, "b r n"]
) -> Float[Tensor, "b m n"]:
    """Dy of least norm among the least-squares solutions of the bordered system, whatever the rank of its blocks.

    >>> H, A = torch.eye(2)[None], torch.ones(1, 2, 2)
    >>> pseudo_inverse(H, A, torch.zeros(1, 2, 1), -torch.ones(1, 2, 1)).flatten()
    tensor([0.5000, 0.5000])
    """
    return minimum_norm_map(H, A).solve(-B, -C)[0]
