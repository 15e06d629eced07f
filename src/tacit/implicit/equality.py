"""DDN[equality] Proposition (Equality Constrained), section 4.3, "Back-propagation through declarative nodes".

    y(x) in argmin_u f(x, u)  subject to  h(x, u) = 0 (p rows)          L = f - lam' h

    Dy = H^-1 A' (A H^-1 A')^-1 (A H^-1 B - C) - H^-1 B

    A = D_Y h        B = D_XY^2 f - sum_i lam_i D_XY^2 h_i        C = D_X h        H = D_YY^2 f - sum_i lam_i D_YY^2 h_i

Domain: f, h twice differentiable around (x, y), rank A = p, H non-singular. The last is more than is needed: the bordered
matrix [[H, A'], [A, 0]] may be regular where H is not, and then the derivative exists although this formula does not
(`kkt.py` has it).
"""

from __future__ import annotations

from tacit.implicit.notation import inverse
from tacit.shapes import Float, Tensor

__all__ = ["equality", "multiplier_derivative", "multipliers"]


def equality(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b p m"], B: Float[Tensor, "b m n"], C: Float[Tensor, "b p n"]
) -> Float[Tensor, "b m n"]:
    """`Dy = H^-1 A' (A H^-1 A')^-1 (A H^-1 B - C) - H^-1 B`; NaN where H or A H^-1 A' is singular.

    The point of the line u_1 + u_2 = x that is nearest to the origin is (x, x) / 2:

    >>> import torch
    >>> H, A = torch.eye(2)[None], torch.ones(1, 1, 2)
    >>> equality(H, A, torch.zeros(1, 2, 1), -torch.ones(1, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """
    H_inv = inverse(H)
    return H_inv @ A.mT @ multiplier_derivative(H, A, B, C) - H_inv @ B


def multiplier_derivative(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b p m"], B: Float[Tensor, "b m n"], C: Float[Tensor, "b p n"]
) -> Float[Tensor, "b p n"]:
    """`D lam = (A H^-1 A')^-1 (A H^-1 B - C)`, from the proof.

    >>> import torch
    >>> H, A = torch.eye(2)[None], torch.ones(1, 1, 2)
    >>> multiplier_derivative(H, A, torch.zeros(1, 2, 1), -torch.ones(1, 1, 1)).flatten()
    tensor([0.5000])
    """
    H_inv = inverse(H)
    return inverse(A @ H_inv @ A.mT) @ (A @ H_inv @ B - C)


def multipliers(A: Float[Tensor, "b p m"], f_Y: Float[Tensor, "b m"]) -> Float[Tensor, "b p"]:
    """`lam = (A A')^-1 A (D_Y f)'`, the solution of `lam' A = D_Y f` where rank A = p.

    >>> import torch
    >>> multipliers(torch.tensor([[[0.0, 2.0]]]), torch.tensor([[0.0, 6.0]]))
    tensor([[3.]])
    """
    return (inverse(A @ A.mT) @ (A @ f_Y[..., None]))[..., 0]
