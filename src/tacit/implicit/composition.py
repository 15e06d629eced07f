"""DDN[composition] Section 4.6, "Composability": nodes whose inputs are the outputs of nodes, by the chain rule.

    z in argmin_v g(x, v),  y in argmin_u f(z, u)          Dy(x) = Dy(z) Dz(x)

    DJ(x) = (DJ(y) Dy(z)) Dz(x)        from left to right, a vector all the way: what a backward pass does
          = DJ(y) (Dy(z) Dz(x))        from right to left, through a matrix

Domain: each Jacobian exists at the solution that was returned. Both orders give the same numbers; for J a scalar, y in
R^m, z in R^k, x in R^n they cost m k + k n and m k n + m n multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tacit.shapes import Float, Tensor

__all__ = ["left_to_right", "multiplications", "right_to_left"]


def left_to_right(v: Float[Tensor, "b m"], jacobians: Sequence[Tensor]) -> Float[Tensor, "b n"]:
    """`((v' J_1) J_2) ...`, J_1 that of the outermost node.

    >>> import torch
    >>> left_to_right(torch.ones(1, 2), [torch.eye(2)[None], torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])])
    tensor([[4., 6.]])
    """
    row = v[:, None, :]
    for J in jacobians:
        row = row @ J
    return row[:, 0]


def right_to_left(v: Float[Tensor, "b m"], jacobians: Sequence[Tensor]) -> Float[Tensor, "b n"]:
    """`v' (J_1 (J_2 ...))`, the same numbers by matrices.

    >>> import torch
    >>> right_to_left(torch.ones(1, 2), [torch.eye(2)[None], torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])])
    tensor([[4., 6.]])
    """
    product = jacobians[-1]
    for J in reversed(jacobians[:-1]):
        product = J @ product
    return (v[:, None, :] @ product)[:, 0]


def multiplications(sizes: Sequence[int]) -> tuple[int, int]:
    """How many a sample takes, left to right and right to left; sizes from y to x, `(m, k, ..., n)`.

    >>> multiplications((10, 10, 1000))
    (10100, 110000)
    """
    left = sum(a * b for a, b in pairwise(sizes))
    right = sum(a * b * sizes[-1] for a, b in pairwise(sizes[:-1])) + sizes[0] * sizes[-1]
    return left, right
