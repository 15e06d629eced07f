"""DDN[fixed-point] Section 2 (deep equilibrium models) by section 4.7.1: a layer iterated until nothing changes.

    y = F(x, y)    is    find u  subject to  F(x, u) - u = 0          Dy = (I - F_Y)^-1 F_X

since A = F_Y - I and C = F_X in `A Dy = -C`. Domain: I - F_Y non-singular; no need for F to be a contraction at y, nor for
the iteration that found y to be remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tacit.implicit.notation import inverse
from tacit.problem import Problem
from tacit.shapes import Float, Tensor

__all__ = ["equilibrium", "fixed_point"]


def fixed_point(F_X: Float[Tensor, "b m n"], F_Y: Float[Tensor, "b m m"]) -> Float[Tensor, "b m n"]:
    """`Dy = (I - F_Y)^-1 F_X`; NaN where I - F_Y is singular.

    y = x + y/2 has y = 2 x:

    >>> fixed_point(torch.tensor([[[1.0]]]), torch.tensor([[[0.5]]]))
    tensor([[[2.]]])
    """
    return inverse(torch.eye(F_Y.shape[-1], dtype=F_Y.dtype, device=F_Y.device) - F_Y) @ F_X


def equilibrium(function: Callable[..., Tensor]) -> Problem:
    """The feasibility problem `F(*inputs, u) - u = 0`, F a function of one sample with u last.

    >>> equilibrium(lambda x, u: x + 0.5 * u).equality(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([0.])
    """

    def equality(*args: Any) -> Tensor:
        return (function(*args) - args[-1]).flatten()

    return Problem(objective=None, equality=equality)
