"""Node: a declared problem as a module, with learnable parameters."""

from __future__ import annotations

from typing import Any

import torch

from tacit.errors import InputTypeError
from tacit.implicit.policy import GradientPolicy
from tacit.node.api import OPTIONS, argmin, read_policy, reject_unknown
from tacit.node.locate import check_solver
from tacit.shapes import Tensor

__all__ = ["Node"]


class Node(torch.nn.Module):
    """A layer that is declared: subclass it, write `objective` and what else the problem has.

    `objective(self, *xs, u)`, `equality` and `inequality` see one sample; so does `start(self, *xs)`, which gives the
    shape of y and where the search begins. `solve(self, *xs) -> y`, optional, sees the whole batch and may use any
    algorithm, numpy included. Parameters and buffers are inputs like any other: their gradients are exact.

    Args:
        solver, in_dims, gradient, on_failure: as in `argmin`; a call may override them.

    >>> import torch, tacit
    >>> class Shrink(tacit.Node):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = torch.nn.Parameter(torch.tensor(1.0))
    ...     def objective(self, x, u):
    ...         return (u - x).square().sum() + self.weight * u.square().sum()
    ...     def start(self, x):
    ...         return x
    >>> Shrink()(torch.tensor([[2.0, 4.0]])).detach()
    tensor([[1., 2.]])
    """

    objective: Any = None
    equality: Any = None
    inequality: Any = None
    start: Any = None
    solve: Any = None

    def __init__(
        self,
        *,
        solver: Any = None,
        in_dims: Any = 0,
        gradient: GradientPolicy | None = None,
        on_failure: str | None = None,
        **unknown: Any,
    ) -> None:
        super().__init__()
        reject_unknown(type(self).__name__, unknown, OPTIONS)
        read_policy(gradient, on_failure)
        check_solver(solver)
        self.options = {"solver": solver, "in_dims": in_dims, "gradient": gradient, "on_failure": on_failure}

    def forward(self, *xs: Any, **overrides: Any) -> Tensor:
        """Return y(xs), `(b, *u)`; keywords override the options given at construction."""
        options = self.__dict__.get("options")
        if options is None:
            raise InputTypeError(
                f"{type(self).__name__}.__init__ expects to call super().__init__() first; it did not."
            )
        return argmin(self, *xs, **{**options, **overrides})
