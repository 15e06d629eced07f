"""Projection onto an Lp ball as a layer: a bound on a norm that leaves small vectors alone. DDN[lp-projection]."""

from __future__ import annotations

import math

import torch

from tacit.functions.norms import lp_norm
from tacit.nn.functional import lp_ball
from tacit.nn.functional.projection import check_options
from tacit.problem.problem import Problem
from tacit.shapes import Tensor

__all__ = ["LpBall"]


class LpBall(torch.nn.Module):
    """y = argmin_u 1/2 ||u - x||^2 subject to ||u||_p <= radius, along one dim.

    Args:
        p: 1 or more, `math.inf` included.
        radius: a positive number; a `torch.nn.Parameter`, which is then learned; or a tensor per channel or sample.
        dim: the dim that holds the vector.
        plateau: "zero", the true derivative, or "printed", which lets coordinates on a plateau move.

    >>> LpBall(2)(torch.tensor([[3.0, 4.0], [0.1, 0.2]]))
    tensor([[0.6000, 0.8000],
            [0.1000, 0.2000]])
    """

    def __init__(self, p: float, radius: float | Tensor = 1.0, dim: int = -1, *, plateau: str = "zero") -> None:
        super().__init__()
        check_options(radius, dim, p, plateau)
        self.p = p
        self.radius: float | Tensor
        if isinstance(radius, Tensor) and not isinstance(radius, torch.nn.Parameter):
            self.register_buffer("radius", radius)
        else:
            self.radius = radius
        self.dim = dim
        self.plateau = plateau

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` projected, in its own shape."""
        return lp_ball(x, self.p, self.radius, self.dim, plateau=self.plateau)

    def problem(self) -> Problem:
        """Return the declaration for one vector: inputs `x (n,)` and `radius ()`; u is `(n,)`.

        Where the norm has kinks (p = 1, infinity) the "zero" gradient is that of the same set written in smooth rows,
        which the sign of x, kept by the projection, makes few; the "printed" gradient is that of the norm itself.
        """

        def objective(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return 0.5 * (u - x).square().sum()

        def norm(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return lp_norm(u, self.p)[None] - radius

        def under_facet(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            towards = torch.where(x >= 0, 1.0, -1.0).to(x.dtype) * u
            return torch.cat([towards.sum()[None] - radius, -towards])

        def box(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return torch.cat([u - radius, -u - radius])

        if self.plateau == "zero" and self.p == 1:
            return Problem(objective=objective, inequality=under_facet)
        if self.plateau == "zero" and math.isinf(self.p):
            return Problem(objective=objective, inequality=box)
        return Problem(objective=objective, inequality=norm)

    def extra_repr(self) -> str:
        """Say which ball."""
        radius = f"tensor{tuple(self.radius.shape)}" if isinstance(self.radius, Tensor) else self.radius
        return f"p={self.p}, radius={radius}, dim={self.dim}, plateau={self.plateau!r}"
