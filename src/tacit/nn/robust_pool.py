"""Robust pooling as a layer: average pooling whose answer a few wild numbers cannot move. DDN[robust-pooling]."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tacit.functions.penalties import Penalty, get_penalty
from tacit.nn.functional import robust_pool
from tacit.problem.problem import Problem
from tacit.shapes import Tensor

__all__ = ["RobustPool"]


class RobustPool(torch.nn.Module):
    """y = argmin_u sum_i w_i phi(u - x_i; alpha), over one dim or several.

    Args:
        penalty: "quadratic", "pseudo_huber", "huber", "welsch", "truncated_quadratic", or a `Penalty` of your own.
        alpha: a number; a `torch.nn.Parameter`, which is then learned; or a tensor per channel or per sample.
        dim, keepdim: as in `torch.mean`.
        search: "global", or "paper": the better of two descents, from the mean and the median.
        singular: the gradient where the curvature sum is zero: "zero", or "uniform" (that of the mean).

    >>> pool = RobustPool("huber", alpha=0.5)
    >>> pool(torch.tensor([[0.0, 0.1, 0.2, 100.0]]))
    tensor([0.2667])
    """

    def __init__(
        self,
        penalty: str | Penalty,
        alpha: float | Tensor = 1.0,
        dim: int | Sequence[int] = -1,
        keepdim: bool = False,
        *,
        search: str = "global",
        singular: str = "zero",
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
        self.options = {"search": search, "singular": singular}

    def forward(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the pooled `x`; `weight`, which broadcasts to `x`, says how much each number counts (0: a hole)."""
        return robust_pool(x, self.penalty, self.alpha, self.dim, self.keepdim, weight=weight, **self.options)

    def problem(self) -> Problem:
        """Return the declaration of one pooled set: inputs `x` (any shape), `alpha ()`, `weight` (as x); u is `()`.

        >>> twin = RobustPool("quadratic").problem()
        >>> twin.objective(torch.tensor([1.0, 3.0]), torch.tensor(1.0), torch.ones(2), torch.tensor(2.0))
        tensor(1.)
        """

        def objective(x: Tensor, alpha: Tensor, weight: Tensor, u: Tensor) -> Tensor:
            return (weight * self.penalty.value(u - x, alpha)).sum()

        return Problem(objective=objective)

    def extra_repr(self) -> str:
        """Say what is pooled and how."""
        alpha = f"tensor{tuple(self.alpha.shape)}" if isinstance(self.alpha, Tensor) else self.alpha
        return f"{self.penalty.name}, alpha={alpha}, dim={self.dim}, keepdim={self.keepdim}"
