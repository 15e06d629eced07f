"""Projection onto the simplex as a layer: sparse probabilities (for radius 1). DDN[lp-projection]."""

from __future__ import annotations

import torch

from tacit.nn.functional import simplex
from tacit.nn.functional.projection import check_options
from tacit.problem.problem import Problem
from tacit.shapes import Tensor

__all__ = ["Simplex"]


class Simplex(torch.nn.Module):
    """y = argmin_u 1/2 ||u - x||^2 subject to u >= 0, sum(u) = radius, along one dim.

    Args:
        radius: a positive number; a `torch.nn.Parameter`, which is then learned; or a tensor per channel or sample.
        dim: the dim that holds the vector.

    >>> Simplex()(torch.tensor([[0.9, 0.5, -3.0]]))
    tensor([[0.7000, 0.3000, 0.0000]])
    """

    def __init__(self, radius: float | Tensor = 1.0, dim: int = -1) -> None:
        super().__init__()
        check_options(radius, dim)
        self.radius: float | Tensor
        if isinstance(radius, Tensor) and not isinstance(radius, torch.nn.Parameter):
            self.register_buffer("radius", radius)
        else:
            self.radius = radius
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` projected, in its own shape."""
        return simplex(x, self.radius, self.dim)

    def problem(self) -> Problem:
        """Return the declaration for one vector: inputs `x (n,)` and `radius ()`; u is `(n,)`."""
        return Problem(
            objective=lambda x, radius, u: 0.5 * (u - x).square().sum(),
            equality=lambda x, radius, u: u.sum()[None] - radius,
            inequality=lambda x, radius, u: -u,
        )

    def extra_repr(self) -> str:
        """Say which simplex."""
        radius = f"tensor{tuple(self.radius.shape)}" if isinstance(self.radius, Tensor) else self.radius
        return f"radius={radius}, dim={self.dim}"
