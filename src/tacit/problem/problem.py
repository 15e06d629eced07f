"""What is asked: y(x) = argmin_u f(x, u) subject to h(x, u) = 0 and g(x, u) <= 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from tacit.errors import InputTypeError, InputValueError
from tacit.options import strict_options
from tacit.shapes import Tensor

__all__ = ["Problem", "SampleFunction"]

SampleFunction = Callable[..., Tensor]


@strict_options
@dataclass(frozen=True)
class Problem:
    """A declared problem: functions of one sample, written in plain torch, positional inputs first and `u` last.

        y(x) = argmin_u  objective(x, u)   subject to   equality(x, u) = 0,   inequality(x, u) <= 0

    Args:
        objective: returns a scalar, shape `()`; `None` declares a feasibility problem.
        equality: returns `(p,)` rows that must vanish, or `None`.
        inequality: returns `(q,)` rows that must not be positive, or `None`.

    Raises:
        InputTypeError: a function is not callable.
        InputValueError: nothing is declared at all.

    >>> import torch
    >>> ball = Problem(
    ...     objective=lambda x, u: 0.5 * (u - x).square().sum(),
    ...     inequality=lambda x, u: u.square().sum()[None] - 1,
    ... )
    >>> ball.inequality(torch.zeros(2), torch.ones(2))
    tensor([1.])
    """

    objective: SampleFunction | None
    equality: SampleFunction | None = None
    inequality: SampleFunction | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            function = getattr(self, field.name)
            if function is not None and not callable(function):
                raise InputTypeError(
                    f"Problem({field.name}=...) expects a function of one sample's inputs and u, or None; "
                    f"received {type(function).__name__}. Write {field.name}=lambda x, u: ..."
                )
        if self.objective is None and self.equality is None and self.inequality is None:
            raise InputValueError(
                "Problem(objective=None) expects at least one constraint: a feasibility problem is made of its "
                "constraints; received none. Give an objective, an equality or an inequality."
            )
