"""Projection onto an Lp sphere as a layer: normalisation in any norm. DDN[lp-projection]."""

from __future__ import annotations

import math

import torch

from tacit.functions.norms import lp_norm
from tacit.nn.functional import lp_sphere
from tacit.nn.functional.projection import check_options
from tacit.problem.problem import Problem
from tacit.shapes import Tensor

__all__ = ["LpSphere"]


class LpSphere(torch.nn.Module):
    """y = argmin_u 1/2 ||u - x||^2 subject to ||u||_p = radius, along one dim.

    Args:
        p: 1 or more, `math.inf` included.
        radius: a positive number; a `torch.nn.Parameter`, which is then learned; or a tensor per channel or sample.
        dim: the dim that holds the vector.
        plateau: "zero", the true derivative, or "printed", which lets coordinates on a plateau move.

    >>> LpSphere(2)(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
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
        return lp_sphere(x, self.p, self.radius, self.dim, plateau=self.plateau)

    def problem(self) -> Problem:
        """Return the declaration for one vector: inputs `x (n,)` and `radius ()`; u is `(n,)`.

        Where the norm has kinks (p = 1, infinity) the "zero" gradient is that of the same set written in smooth rows,
        which the sign of x, kept by the projection, makes few; the "printed" gradient is that of the norm itself.
        """

        def objective(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return 0.5 * (u - x).square().sum()

        def norm(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return lp_norm(u, self.p)[None] - radius

        def sign(x: Tensor) -> Tensor:
            return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

        def on_facet(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return (sign(x) * u).sum()[None] - radius

        def same_orthant(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return -sign(x) * u

        def largest(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            return (sign(x) * u).gather(-1, x.abs().argmax(-1, keepdim=True)) - radius

        def box(x: Tensor, radius: Tensor, u: Tensor) -> Tensor:
            held = torch.arange(len(x), device=x.device) == x.abs().argmax(-1)  # by the equality: no row twice
            return torch.cat([torch.where(held, -radius, u - radius), torch.where(held, -radius, -u - radius)])

        if self.plateau == "zero" and self.p == 1:
            return Problem(objective=objective, equality=on_facet, inequality=same_orthant)
        if self.plateau == "zero" and math.isinf(self.p):
            return Problem(objective=objective, equality=largest, inequality=box)
        return Problem(objective=objective, equality=norm)

    def extra_repr(self) -> str:
        """Say which sphere."""
        radius = f"tensor{tuple(self.radius.shape)}" if isinstance(self.radius, Tensor) else self.radius
        return f"p={self.p}, radius={radius}, dim={self.dim}, plateau={self.plateau!r}"
