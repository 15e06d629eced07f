"""DDN[feasibility] Section 4.7.1, "Feasibility problems": no objective, y only satisfies its constraints.

    find u  subject to  h(x, u) = 0,  g(x, u) <= 0          A Dy = -C

A, C are those of the equalities and the active inequalities. Domain: rank A = m, then Dy is unique (with more rows than
unknowns [A C] must be consistent, see `nonregular.py`). With fewer rows than unknowns the equations leave a family; its
member of least norm is taken, and the library flags it as SINGULAR.
"""

from __future__ import annotations

from tacit.implicit.notation import inverse
from tacit.shapes import Float, Tensor

__all__ = ["feasibility"]


def feasibility(A: Float[Tensor, "b r m"], C: Float[Tensor, "b r n"]) -> Float[Tensor, "b m n"]:
    """Solve `A Dy = -C`: by A^-1, by least squares with more rows than unknowns, of least norm with fewer.

    The paper's (u - 1)^2 = x^2 at x = 1, y = 2 has A = 2, C = -2:

    >>> import torch
    >>> feasibility(torch.tensor([[[2.0]]]), torch.tensor([[[-2.0]]]))
    tensor([[[1.]]])
    """
    r, m = A.shape[-2:]
    if r == m:
        return -inverse(A) @ C
    if r > m:
        return -inverse(A.mT @ A) @ A.mT @ C
    return -A.mT @ inverse(A @ A.mT) @ C
