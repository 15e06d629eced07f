"""DDN[bilevel] Section 4.1, "Learning": an outer objective over the solutions of an inner problem.

    minimise J(x, y)  subject to  y in argmin_u f(x, u)          D J = D_X J + D_Y J Dy

Where y enters J through f alone, `J = g(x, f(x, y))`, and the inner problem is unconstrained, D_Y f = 0 makes Dy unnecessary:

    D J = D_X g + D_F g D_X f

Domain: Dy exists (the first form); y a minimum, unconstrained (the second). With constraints the Lagrangian takes f's
place: `D_X f - lam' D_X [h; g]`, which is what `tacit.value` differentiates (`node/envelope.py`).
"""

from __future__ import annotations

from tacit.shapes import Float, Tensor

__all__ = ["shortcut_derivative", "total_derivative"]


def total_derivative(
    J_X: Float[Tensor, "b n"], J_Y: Float[Tensor, "b m"], Dy: Float[Tensor, "b m n"]
) -> Float[Tensor, "b n"]:
    """`D J = D_X J + D_Y J Dy`.

    >>> import torch
    >>> total_derivative(torch.tensor([[1.0]]), torch.tensor([[2.0]]), torch.tensor([[[3.0]]]))
    tensor([[7.]])
    """
    return J_X + (J_Y[:, None, :] @ Dy)[:, 0]


def shortcut_derivative(
    g_X: Float[Tensor, "b n"], g_F: Float[Tensor, " b"], L_X: Float[Tensor, "b n"]
) -> Float[Tensor, "b n"]:
    """`D J = D_X g + D_F g D_X L` for `J = g(x, f(x, y))`, with L = f where there are no constraints.

    >>> import torch
    >>> shortcut_derivative(torch.tensor([[1.0]]), torch.tensor([2.0]), torch.tensor([[3.0]]))
    tensor([[7.]])
    """
    # Erratum: the paper prints D f, the total derivative, in both lines; the partial D_X f is meant.
    return g_X + g_F[:, None] * L_X
