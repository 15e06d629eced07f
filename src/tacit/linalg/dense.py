"""A batch of dense square systems `K w = v`, factored once, with the condition of each element known.

The factorisation is LU with partial pivoting of the scaled matrix `S K S`. `rcond` estimates
`1 / (|S K S|_1 |(S K S)^-1|_1)` from a few triangular solves: the block one-norm estimator (Hager's step from two
starting vectors), a lower bound of the inverse's norm that is seldom off by more than a factor of three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from tacit.linalg.condition import inverse_norm
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Factor", "factor"]


@dataclass(frozen=True)
class Factor:
    """The factored `S K S` of a batch: `lu` and `pivots` of its transpose, `scale` (b, N), `rcond`, `ok` (b,).

    `rcond` is 0 for an element that is singular to the last bit or not finite, and `ok` is False there: its solutions
    are zero. A tiny `rcond` (below N eps, say) means that the element is singular as far as its dtype can tell.
    """

    lu: Float[Tensor, "b N N"]
    pivots: Int[Tensor, "b N"]
    scale: Float[Tensor, "b N"]
    rcond: Float[Tensor, " b"]
    ok: Bool[Tensor, " b"]

    def solve(self, v: Float[Tensor, "b N k"], K: Float[Tensor, "b N N"] | None = None) -> Float[Tensor, "b N k"]:
        """Return `w` with `K w = v`, and zero for the elements that are not `ok`.

        With `K` given, one step of iterative refinement is taken. A right-hand side that is not finite spoils its own
        element only.

        >>> K = torch.tensor([[[2.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
        >>> factor(K).solve(torch.ones(2, 2, 1)).squeeze(-1)
        tensor([[ 1., -1.],
                [ 0.,  0.]])
        """
        w = self._solve_scaled(v)
        if K is not None:
            # An element that is not ok has w = 0, and its K may hold NaN.
            residual = torch.where(self.ok[:, None, None], v - K @ w, 0.0)
            w = w + self._solve_scaled(residual)
        return w

    def _solve_scaled(self, v: Float[Tensor, "b N k"]) -> Float[Tensor, "b N k"]:
        scale = self.scale[:, :, None]
        w = scale * torch.linalg.lu_solve(self.lu, self.pivots, scale * v, adjoint=True)
        return torch.where(self.ok[:, None, None], w, 0.0)


def factor(K: Float[Tensor, "b N N"], scale: Float[Tensor, "b N"] | None = None) -> Factor:
    """Factor every element of `K` (b, N, N), scaled by `scale` (b, N) on both sides, and estimate its condition.

    >>> K = torch.diag_embed(torch.tensor([[1.0, 4.0], [1.0, 0.0]]))
    >>> f = factor(K)
    >>> f.rcond, f.ok
    (tensor([0.2500, 0.0000]), tensor([ True, False]))
    """
    b, N = K.shape[:2]
    if scale is None:
        scale = K.new_ones(b, N)
        scaled = K.detach()
    else:
        scaled = (scale[:, :, None] * K.detach()).mul_(scale[:, None, :])
    norm = scaled.abs().sum(-2).amax(-1) if N else K.new_zeros(b)
    # LAPACK wants columns: the transpose of a row-major matrix is handed over without being copied around.
    lu, pivots, info = torch.linalg.lu_factor_ex(scaled.mT)
    ok = (info == 0) & norm.isfinite()
    if not bool(ok.all()):
        lu, pivots = _with_identity_where_broken(lu, pivots, ok)
    rcond = torch.ones_like(norm)
    if N:
        rcond = 1.0 / (
            norm * inverse_norm(_solver(lu, pivots, adjoint=True), _solver(lu, pivots, adjoint=False), scale)
        )
    rcond = torch.where(ok & rcond.isfinite(), rcond, 0.0).clamp(max=1.0)
    return Factor(lu, pivots, scale, rcond, ok & (rcond > 0))


def _solver(lu: Tensor, pivots: Tensor, adjoint: bool) -> Callable[[Tensor], Tensor]:
    return lambda v: torch.linalg.lu_solve(lu, pivots, v, adjoint=adjoint)


def _with_identity_where_broken(
    lu: Float[Tensor, "b N N"], pivots: Int[Tensor, "b N"], ok: Bool[Tensor, " b"]
) -> tuple[Float[Tensor, "b N N"], Int[Tensor, "b N"]]:
    """Put the identity in place of the factors that cannot be solved with, so that nothing infinite arises."""
    N = lu.shape[-1]
    eye = torch.eye(N, dtype=lu.dtype, device=lu.device)
    rows = torch.arange(1, N + 1, dtype=pivots.dtype, device=pivots.device)
    return torch.where(ok[:, None, None], lu, eye), torch.where(ok[:, None], pivots, rows)
