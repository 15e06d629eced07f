"""DDN[sum-of-squares] Section 4.4: one constraint `sum_i h_i(x, u)^2 = 0` in the place of many does not work.

    h~ = sum_i h_i^2          D_Y h~ = 2 h' A = 0 wherever h = 0

Its gradient vanishes at every feasible point, so no feasible point is regular and no multiplier exists in general. The
library flags such a row as DEPENDENT; state the rows one by one.
"""

from __future__ import annotations

from tacit.shapes import Float, Tensor

__all__ = ["combined", "combined_gradient"]


def combined(h: Float[Tensor, "b p"]) -> Float[Tensor, "b 1"]:
    """`h~ = sum_i h_i^2`, zero if and only if every h_i is: why it tempts.

    >>> import torch
    >>> combined(torch.tensor([[3.0, 4.0]]))
    tensor([[25.]])
    """
    return h.square().sum(1, keepdim=True)


def combined_gradient(h: Float[Tensor, "b p"], A: Float[Tensor, "b p m"]) -> Float[Tensor, "b 1 m"]:
    """`D_Y h~ = 2 h' A`, zero where h is: why it fails.

    >>> import torch
    >>> combined_gradient(torch.zeros(1, 2), torch.eye(2)[None])
    tensor([[[0., 0.]]])
    """
    return 2 * h[:, None, :] @ A
