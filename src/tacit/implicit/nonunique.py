"""DDN[nonunique] Section 4.7.4, "Non-unique solutions": the derivative belongs to the y that was returned.

A problem may have several solutions; each isolated one is a function of x of its own, with the derivative of the
propositions above. The backward pass must use the y of the forward pass. The paper's pathological example is

    y in argmin_u 0  subject to  (u - 1)^2 - x^2 = 0          y = 1 - x: Dy = -1          y = 1 + x: Dy = +1

(It prints y for u in the constraint.) Domain: x != 0; at x = 0 the two solutions meet and neither has a derivative.
"""

from __future__ import annotations

from tacit.problem import Problem
from tacit.shapes import Float, Tensor

__all__ = ["branch_derivative", "two_branches"]


def two_branches() -> Problem:
    """The pathological problem, x and u of shape (1,).

    >>> import torch
    >>> two_branches().equality(torch.tensor([0.5]), torch.tensor([1.5]))
    tensor([0.])
    """
    return Problem(objective=None, equality=lambda x, u: (u - 1).square() - x.square())


def branch_derivative(x: Float[Tensor, " b"], y: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
    """`Dy = -C / A = x / (y - 1)`: +1 or -1, by the branch that y lies on.

    >>> import torch
    >>> branch_derivative(torch.tensor([0.5, 0.5]), torch.tensor([1.5, 0.5]))
    tensor([ 1., -1.])
    """
    return x / (y - 1)
