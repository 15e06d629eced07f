"""DDN[unconstrained] Proposition (Unconstrained), section 4.3, "Back-propagation through declarative nodes".

    y(x) in argmin_u f(x, u)          Dy = -H^-1 B          H = D_YY^2 f,  B = D_XY^2 f

Domain: f twice differentiable around (x, y), H non-singular. It holds at any stationary point of f(x, .), not at minima
alone: only `D_Y f = 0` is differentiated.
"""

from __future__ import annotations

from tacit.implicit.notation import inverse
from tacit.shapes import Float, Tensor

__all__ = ["unconstrained"]


def unconstrained(H: Float[Tensor, "b m m"], B: Float[Tensor, "b m n"]) -> Float[Tensor, "b m n"]:
    """`Dy = -H^-1 B`; NaN for an element whose H is singular.

    The mean of n values, `f = 1/2 sum (u - x_i)^2`, has H = n and B = -1':

    >>> import torch
    >>> unconstrained(torch.tensor([[[4.0]]]), -torch.ones(1, 1, 4))
    tensor([[[0.2500, 0.2500, 0.2500, 0.2500]]])
    """
    return -inverse(H) @ B
