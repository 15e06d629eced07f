"""DDN[singular-hessian] Section 4.7.4, "Singular Hessians": y is not isolated, and what may be taken for its derivative.

    1. reformulate: a constraint that removes the free directions makes y unique (`equality.py`, or `kkt.py` where H stays
       singular: with |u| = 1 the quaternion below has H = 0 apart from the multiplier's part)
    2. proximal: add delta/2 |u - y|^2, so that H becomes H + delta I
    3. pseudo-inverse: the whole family of solutions of H Dy = -B is { -H^+ B + (I - H^+ H) Z : Z in R^(m x n) }

Domain: H symmetric of any rank; H Dy = -B must be consistent for the third to solve it and not only approximate it.

The paper's example `f = -x'u / |u|` has `y = alpha x` for any alpha > 0, `H = (I - x x' / |x|^2) / (alpha^2 |x|)`, and the
member of least norm `Dy = alpha (I - x x' / |x|^2)`, that of the unit quaternion where alpha = 1 / |x|.
"""

from __future__ import annotations

import torch

from tacit.implicit.unconstrained import unconstrained
from tacit.linalg import solution_family
from tacit.shapes import Float, Tensor

__all__ = ["aligned", "family", "minimum_norm", "proximal"]


def minimum_norm(H: Float[Tensor, "b m m"], B: Float[Tensor, "b m n"]) -> Float[Tensor, "b m n"]:
    """`Dy = -H^+ B`, the member of least norm.

    >>> minimum_norm(torch.diag_embed(torch.tensor([[2.0, 0.0]])), torch.tensor([[[-2.0], [0.0]]])).flatten()
    tensor([1., 0.])
    """
    return family(H, B, torch.zeros_like(B))


def family(H: Float[Tensor, "b m m"], B: Float[Tensor, "b m n"], Z: Float[Tensor, "b m n"]) -> Float[Tensor, "b m n"]:
    """`-H^+ B + (I - H^+ H) Z`, the member that Z picks.

    >>> H, B = torch.diag_embed(torch.tensor([[2.0, 0.0]])), torch.tensor([[[-2.0], [0.0]]])
    >>> family(H, B, torch.tensor([[[9.0], [5.0]]])).flatten()
    tensor([1., 5.])
    """
    return solution_family(H, B, Z)


def proximal(H: Float[Tensor, "b m m"], B: Float[Tensor, "b m n"], delta: float) -> Float[Tensor, "b m n"]:
    """`Dy = -(H + delta I)^-1 B`, that of the problem with `delta/2 |u - y|^2` added; towards the least norm as delta -> 0.

    >>> proximal(torch.diag_embed(torch.tensor([[2.0, 0.0]])), torch.tensor([[[-3.0], [0.0]]]), 1.0).flatten()
    tensor([1., 0.])
    """
    # The term is centred at the y that was found, held fixed: its own D_XY^2 is zero.
    return unconstrained(H + delta * torch.eye(H.shape[-1], dtype=H.dtype, device=H.device), B)


def aligned(x: Float[Tensor, "b m"], alpha: Float[Tensor, " b"]) -> Float[Tensor, "b m m"]:
    """`alpha (I - x x' / |x|^2)`, the derivative of least norm of the alignment with x, x != 0.

    >>> aligned(torch.tensor([[0.0, 2.0]]), torch.tensor([3.0]))
    tensor([[[3., -0.],
             [-0., 0.]]])
    """
    unit = x / x.norm(dim=1, keepdim=True)
    eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    return alpha[:, None, None] * (eye - unit[:, :, None] * unit[:, None, :])
