"""DDN[imperative] Last proposition, section 4.6, "Relationship to conventional neural networks": any layer, declared.

    y = f~(x)    is    y = argmin_u 1/2 |u - f~(x)|^2          H = I,  B = -D f~,  Dy = D f~

Domain: f~ differentiable. There is no reason to do so but to show that declared nodes are at least as general.

DDN[relu] Section 4.7.2, footnote: the rectified linear unit is `y = argmin_{u >= 0} 1/2 |u - x|^2`. At x_i = 0 the bound is
weakly active; held, it gives the derivative 0 that is customary, let go it gives 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.problem import Problem
from tacit.shapes import Float, Tensor

__all__ = ["declared", "rectified_linear_unit"]


def declared(function: Callable[..., Tensor]) -> Problem:
    """The problem whose solution is `function(*inputs)`, a function of one sample.

    >>> import torch
    >>> squares = declared(lambda x: x.square())
    >>> squares.objective(torch.tensor([2.0]), torch.tensor([4.0]))
    tensor(0.)
    """

    def objective(*args: Any) -> Tensor:
        *xs, u = args
        value: Tensor = 0.5 * (u - function(*xs)).square().sum()
        return value

    return Problem(objective)


def rectified_linear_unit() -> Problem:
    """ReLU as a declared problem, for x and u of one shape. DDN[relu]

    >>> import torch
    >>> rectified_linear_unit().inequality(torch.tensor([-1.0]), torch.tensor([0.0]))
    tensor([-0.])
    """

    def objective(x: Float[Tensor, "*u"], u: Float[Tensor, "*u"]) -> Tensor:
        value: Tensor = 0.5 * (u - x).square().sum()
        return value

    return Problem(objective, inequality=lambda x, u: -u.flatten())
