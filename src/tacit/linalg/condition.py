"""How large is the inverse of a matrix that can be solved with? The block one-norm estimator.

Hager's method from two starting vectors: one solve, one step along the gradient of the norm, which points to a column
of the inverse, and that column. A lower bound, seldom off by more than a factor of three.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tacit.shapes import Float, Tensor

__all__ = ["inverse_norm", "spread_vectors"]


def inverse_norm(
    solve: Callable[[Tensor], Tensor], solve_transposed: Callable[[Tensor], Tensor], like: Float[Tensor, "b N"]
) -> Float[Tensor, " b"]:
    """Estimate `|K^-1|_1` (b,) from below, N > 0; both functions map (b, N, 2) to (b, N, 2). An overflow is infinite.

    >>> d = torch.tensor([[4.0, 0.5]])
    >>> inverse_norm(lambda v: v / d[..., None], lambda v: v / d[..., None], d)
    tensor([2.])
    """
    b, N = like.shape
    # Spread over all coordinates without a symmetry that a structured null vector could share.
    start = spread_vectors(N, like)
    first = solve((start / start.abs().sum(0)).expand(b, N, 2))
    sign = torch.where(first >= 0, 1.0, -1.0).to(like.dtype)
    gradient = solve_transposed(sign).abs()
    best = gradient.nan_to_num(nan=0.0).argmax(dim=1, keepdim=True)
    second = solve(torch.zeros_like(sign).scatter(1, best, 1.0))
    sizes = torch.cat([first.abs().sum(1), gradient.amax(1), second.abs().sum(1)], dim=-1)
    return torch.where(sizes.isfinite(), sizes, float("inf")).amax(-1)


def spread_vectors(N: int, like: Tensor) -> Float[Tensor, "N 2"]:
    """Return two fixed vectors without pattern, fractional parts of multiples of irrationals; one has both signs."""
    index = torch.arange(1, N + 1, dtype=torch.float64, device=like.device)
    golden = (0.6180339887498949 * index) % 1 + 0.5
    other = ((0.7320508075688772 * index) % 1 + 0.25) * torch.where(index % 2 == 0, -1.0, 1.0)
    return torch.stack([golden, other], -1).to(like.dtype)
