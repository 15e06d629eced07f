"""DDN[single-equality] First corollary, section 4.4, "Simpler equality constraints": one equality that does not depend on x.

    y(x) in argmin_u f(x, u)  subject to  h(u) = 0 (one row)          L = f - lam h

    Dy = (H^-1 a a' H^-1 / (a' H^-1 a) - H^-1) B

    a = (D_Y h)'     B = D_XY^2 f     H = D_YY^2 f - lam D_YY^2 h     lam = (d f / d y_i) / (d h / d y_i), any a_i != 0

Domain: a != 0, H non-singular (and a' H^-1 a != 0).

DDN[orthogonality] Observation of the same section: where no row depends on x, `A Dy = 0`: y moves along the constraint.
"""

from __future__ import annotations

from tacit.implicit.notation import inverse
from tacit.shapes import Float, Tensor

__all__ = ["motion_off_constraint", "multiplier", "single_equality"]


def single_equality(
    H: Float[Tensor, "b m m"], a: Float[Tensor, "b m"], B: Float[Tensor, "b m n"]
) -> Float[Tensor, "b m n"]:
    """`Dy = (H^-1 a a' H^-1 / (a' H^-1 a) - H^-1) B`; NaN where H is singular.

    The projection onto the unit circle at x = (2, 0): y = (1, 0), lam = -1/2 for h = |u|^2 - 1, so H = 2 I, a = 2 y.

    >>> import torch
    >>> single_equality(2 * torch.eye(2)[None], torch.tensor([[2.0, 0.0]]), -torch.eye(2)[None])
    tensor([[[-0.0000, -0.0000],
             [0.0000, 0.5000]]])
    """
    H_inv, a = inverse(H), a[..., None]
    return (H_inv @ a @ a.mT @ H_inv / (a.mT @ H_inv @ a) - H_inv) @ B


def multiplier(a: Float[Tensor, "b m"], f_Y: Float[Tensor, "b m"]) -> Float[Tensor, " b"]:
    """`lam = f_{y_i} / h_{y_i}`, for the i where |h_{y_i}| is largest: any non-zero one is right, this one is stable.

    >>> import torch
    >>> multiplier(torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, -6.0]]))
    tensor([-3.])
    """
    i = a.abs().argmax(1, keepdim=True)
    return (f_Y.gather(1, i) / a.gather(1, i))[:, 0]


def motion_off_constraint(A: Float[Tensor, "b p m"], Dy: Float[Tensor, "b m n"]) -> Float[Tensor, "b p n"]:
    """`A Dy`, zero where the rows do not depend on x (and -C where they do). DDN[orthogonality]

    >>> import torch
    >>> motion_off_constraint(torch.tensor([[[2.0, 0.0]]]), torch.tensor([[[0.0], [0.5]]]))
    tensor([[[0.]]])
    """
    return A @ Dy
