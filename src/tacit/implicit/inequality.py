"""DDN[inequality] Proposition (Inequality Constrained), section 4.3, "Back-propagation through declarative nodes".

    y(x) in argmin_u f(x, u)  subject to  h(x, u) = 0 (p rows),  g(x, u) <= 0 (q rows)          L = f - lam' [h; g]

With A, B, C, H those of the active rows `[h; g]`, Dy is that of the equality proposition, and lam_i <= 0 for i > p. Rows
that are not active change nothing and are left out. Domain: f, h, g twice differentiable, active rows independent, H
non-singular. Dy is one-sided wherever an active inequality has lam_i = 0.

Three scenarios for one inequality: g < 0 (the unconstrained derivative); g = 0 and D_Y f != 0 (as if it were an equality);
g = 0 and D_Y f = 0 (undefined: either may be taken).
"""

from __future__ import annotations

from enum import IntEnum

import torch

from tacit.implicit.notation import inverse
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Scenario", "has_right_signs", "inequality", "one_sided", "scenario"]


class Scenario(IntEnum):
    """Where the solution of a problem with one inequality lies."""

    INSIDE = 1
    HELD = 2
    TOUCHING = 3


def scenario(g: Float[Tensor, " b"], f_Y: Float[Tensor, "b m"], tolerance: float) -> Int[Tensor, " b"]:
    """Which of the three scenarios holds, by the value of g and the length of D_Y f, both below `tolerance` or not.

    >>> scenario(torch.tensor([-1.0, 0.0, 0.0]), torch.tensor([[0.0], [2.0], [0.0]]), 1e-6)
    tensor([1, 2, 3])
    """
    pushed = f_Y.norm(dim=1) > tolerance
    on_boundary = torch.where(pushed, int(Scenario.HELD), int(Scenario.TOUCHING))
    return torch.where(g < -tolerance, int(Scenario.INSIDE), on_boundary)


def inequality(
    H: Float[Tensor, "b m m"],
    A: Float[Tensor, "b r m"],
    B: Float[Tensor, "b m n"],
    C: Float[Tensor, "b r n"],
    active: Bool[Tensor, "b r"],
) -> Float[Tensor, "b m n"]:
    """`Dy = H^-1 A' (A H^-1 A')^-1 (A H^-1 B - C) - H^-1 B` with the active rows of A and C only.

    Rows that are not active become zero, with a one on the diagonal of A H^-1 A': that is leaving them out, and lets the
    elements of a batch have different active sets.

    >>> H, A = torch.eye(1).expand(2, 1, 1), torch.ones(2, 1, 1)
    >>> B, C = -torch.ones(2, 1, 1), torch.zeros(2, 1, 1)
    >>> inequality(H, A, B, C, torch.tensor([[False], [True]])).flatten()
    tensor([1., 0.])
    """
    A, C = torch.where(active[..., None], A, 0.0), torch.where(active[..., None], C, 0.0)
    H_inv = inverse(H)
    bordered = A @ H_inv @ A.mT + torch.diag_embed((~active).to(H.dtype))
    return H_inv @ A.mT @ inverse(bordered) @ (A @ H_inv @ B - C) - H_inv @ B


def one_sided(
    H: Float[Tensor, "b m m"],
    A: Float[Tensor, "b r m"],
    B: Float[Tensor, "b m n"],
    C: Float[Tensor, "b r n"],
    strong: Bool[Tensor, "b r"],
    weak: Bool[Tensor, "b r"],
) -> tuple[Float[Tensor, "b m n"], Float[Tensor, "b m n"]]:
    """The derivatives with all weakly active rows held, and with all of them let go.

    >>> H, A = torch.eye(1)[None], torch.ones(1, 1, 1)
    >>> held, free = one_sided(H, A, -H, 0 * H, torch.tensor([[False]]), torch.tensor([[True]]))
    >>> held.item(), free.item()
    (0.0, 1.0)
    """
    return inequality(H, A, B, C, strong | weak), inequality(H, A, B, C, strong)


def has_right_signs(lam: Float[Tensor, "b r"], equalities: int, tolerance: float = 0.0) -> Bool[Tensor, " b"]:
    """Whether `lam_i <= 0` for every inequality row.

    >>> has_right_signs(torch.tensor([[5.0, -1.0], [5.0, 1.0]]), equalities=1)
    tensor([ True, False])
    """
    # Erratum: the proof speaks of non-negative multipliers; with L = f - lam' g the statement's lam_i <= 0 is right.
    return (lam[:, equalities:] <= tolerance).all(1)
