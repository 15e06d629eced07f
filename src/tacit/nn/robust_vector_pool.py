"""Robust pooling of vectors as a layer: one location in R^C for a set of vectors. DDN[robust-pooling]."""

from __future__ import annotations

import torch

from tacit.functions.penalties import Penalty, get_penalty
from tacit.nn.functional import robust_vector_pool
from tacit.problem.problem import Problem
from tacit.shapes import Tensor

__all__ = ["RobustVectorPool"]


class RobustVectorPool(torch.nn.Module):
    """y = argmin_u sum_i w_i phi(||u - x_i||; alpha), over the vectors along one dim.

    Args:
        penalty: "quadratic", "pseudo_huber", "huber", "welsch", "truncated_quadratic", or a `Penalty` of your own.
        alpha: a number; a `torch.nn.Parameter`, which is then learned; or a tensor per sample.
        dim: the dim to pool over.
        keepdim: keep it with size 1.
        vector_dim: the dim that holds a vector.

    >>> pool = RobustVectorPool("truncated_quadratic")
    >>> pool(torch.tensor([[[0.0, 0.0], [0.0, 0.2], [50.0, 50.0]]]))
    tensor([[0.0000, 0.1000]])
    """

    def __init__(
        self,
        penalty: str | Penalty,
        alpha: float | Tensor = 1.0,
        dim: int = -2,
        keepdim: bool = False,
        *,
        vector_dim: int = -1,
    ) -> None:
        super().__init__()
        self.penalty = get_penalty(penalty)
        self.alpha: float | Tensor
        if isinstance(alpha, Tensor) and not isinstance(alpha, torch.nn.Parameter):
            self.register_buffer("alpha", alpha)
        else:
            self.alpha = alpha
        self.dim = dim
        self.keepdim = keepdim
        self.vector_dim = vector_dim

    def forward(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the pooled `x`; `weight` says how much each vector counts (0: a hole)."""
        return robust_vector_pool(
            x, self.penalty, self.alpha, self.dim, self.keepdim, vector_dim=self.vector_dim, weight=weight
        )

    def problem(self) -> Problem:
        """Return the declaration of one pooled set: inputs `x (n, c)`, `alpha ()`, `weight (n,)`; u is `(c,)`."""

        def objective(x: Tensor, alpha: Tensor, weight: Tensor, u: Tensor) -> Tensor:
            square = (u - x).square().sum(-1)
            apart = square > 0
            rho = torch.where(apart, square, 1.0).sqrt()
            # The root of 0 has no derivative, yet the penalty of the distance has: there it is its own parabola.
            zero = torch.zeros_like(square)
            bend = self.penalty.derivatives(zero, alpha).curvature
            parabola = self.penalty.value(zero, alpha) + 0.5 * bend * square
            return (weight * torch.where(apart, self.penalty.value(rho, alpha), parabola)).sum()

        return Problem(objective=objective)

    def extra_repr(self) -> str:
        """Say what is pooled and how."""
        alpha = f"tensor{tuple(self.alpha.shape)}" if isinstance(self.alpha, Tensor) else self.alpha
        return f"{self.penalty.name}, alpha={alpha}, dim={self.dim}, vector_dim={self.vector_dim}"
