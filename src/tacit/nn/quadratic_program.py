"""A quadratic program as a layer, its matrices given, learned, or both. DDN[quadratic-program]."""

from __future__ import annotations

from typing import Any

import torch

from tacit.errors import InputTypeError
from tacit.nn.functional import quadratic_program, solve_quadratic_program
from tacit.nn.functional.quadratic import NAMES, declared
from tacit.problem import Solution, describe
from tacit.problem.problem import Problem
from tacit.shapes import Shaped, Tensor

__all__ = ["QuadraticProgram"]


class QuadraticProgram(torch.nn.Module):
    """u = argmin_u 1/2 u'Qu + q'u subject to A u = b, G u <= h; differentiable in all six.

    What is given at construction belongs to the layer, a `torch.nn.Parameter` being learned and another tensor being a
    buffer; the rest is given in the call. Every matrix may be left out, shared, or have a batch axis in front.

    Args:
        Q: `(n, n)`, positive semidefinite, of which the symmetric part counts; without it the program is linear.
        q: `(n,)`. A, b: `(p, n)`, `(p,)`. G, h: `(q, n)`, `(q,)`.
        engine, gradient, on_failure, max_iter: as in `tacit.nn.functional.quadratic_program`.

    >>> budget = QuadraticProgram(Q=torch.eye(3), A=torch.ones(1, 3), b=torch.ones(1), G=-torch.eye(3), h=torch.zeros(3))
    >>> budget(q=torch.tensor([[-0.9, -0.5, 3.0], [0.0, 0.0, 0.0]]))
    tensor([[0.7000, 0.3000, 0.0000],
            [0.3333, 0.3333, 0.3333]])
    """

    Q: Tensor | None
    q: Tensor | None
    A: Tensor | None
    b: Tensor | None
    G: Tensor | None
    h: Tensor | None

    def __init__(
        self,
        Q: Shaped[Tensor, "..."] | None = None,
        q: Shaped[Tensor, "..."] | None = None,
        A: Shaped[Tensor, "..."] | None = None,
        b: Shaped[Tensor, "..."] | None = None,
        G: Shaped[Tensor, "..."] | None = None,
        h: Shaped[Tensor, "..."] | None = None,
        *,
        engine: str | None = None,
        gradient: Any = None,
        on_failure: str | None = None,
        max_iter: int = 50,
    ) -> None:
        super().__init__()
        for name, value in zip(NAMES, (Q, q, A, b, G, h), strict=True):
            if value is None or isinstance(value, torch.nn.Parameter):
                self.register_parameter(name, value)
            elif isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                raise InputTypeError(f"QuadraticProgram expects {name} as a tensor; received {describe(value)}.")
        self.options = {"engine": engine, "gradient": gradient, "on_failure": on_failure, "max_iter": max_iter}

    def forward(
        self,
        Q: Shaped[Tensor, "..."] | None = None,
        q: Shaped[Tensor, "..."] | None = None,
        A: Shaped[Tensor, "..."] | None = None,
        b: Shaped[Tensor, "..."] | None = None,
        G: Shaped[Tensor, "..."] | None = None,
        h: Shaped[Tensor, "..."] | None = None,
    ) -> Shaped[Tensor, "..."]:
        """Return u `(batch, n)`, or `(n,)` when nothing has a batch axis; what is given here goes before the layer's own."""
        return quadratic_program(*self._six(Q, q, A, b, G, h), **self.options)

    def solve(
        self,
        Q: Shaped[Tensor, "..."] | None = None,
        q: Shaped[Tensor, "..."] | None = None,
        A: Shaped[Tensor, "..."] | None = None,
        b: Shaped[Tensor, "..."] | None = None,
        G: Shaped[Tensor, "..."] | None = None,
        h: Shaped[Tensor, "..."] | None = None,
    ) -> Solution:
        """Return all that is known of the answers: multipliers, residual, status; detached, batch first."""
        return solve_quadratic_program(*self._six(Q, q, A, b, G, h), **self.options)

    def problem(self) -> Problem:
        """Return the declaration for one sample: inputs Q, q, A, b, G, h, those left out as zeros or with no rows; u `(n,)`."""
        return declared(1, 1)

    def _six(self, *given: Tensor | None) -> list[Tensor | None]:
        return [getattr(self, name) if value is None else value for name, value in zip(NAMES, given, strict=True)]

    def extra_repr(self) -> str:
        """Say what belongs to the layer."""
        own = [f"{name}={tuple(value.shape)}" for name in NAMES if (value := getattr(self, name)) is not None]
        return ", ".join(own)
