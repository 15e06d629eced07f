"""DDN[linear-equality] Second corollary, section 4.4, "Simpler equality constraints": fixed linear equalities.

    y(x) in argmin_u f(x, u)  subject to  A u = d,  rank A = p

    Dy = (H^-1 A' (A H^-1 A')^-1 A H^-1 - H^-1) B          H = D_YY^2 f,  B = D_XY^2 f

Domain: H non-singular. The rows are linear, so lam does not enter H; they are fixed, so C = 0.
"""

from __future__ import annotations

from tacit.implicit.notation import inverse
from tacit.shapes import Float, Tensor

__all__ = ["linear_equality"]


def linear_equality(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b p m"], B: Float[Tensor, "b m n"]
) -> Float[Tensor, "b m n"]:
    """`Dy = (H^-1 A' (A H^-1 A')^-1 A H^-1 - H^-1) B`; NaN where H is singular.

    The projection onto a plane, H = I and B = -I, is I minus the projector onto its normal:

    >>> import torch
    >>> linear_equality(torch.eye(2)[None], torch.ones(1, 1, 2), -torch.eye(2)[None])
    tensor([[[ 0.5000, -0.5000],
             [-0.5000,  0.5000]]])
    """
    H_inv = inverse(H)
    return (H_inv @ A.mT @ inverse(A @ H_inv @ A.mT) @ A @ H_inv - H_inv) @ B
