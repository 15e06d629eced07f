"""A structured matrix with a border of constraint rows, by the Schur complement.

    [[H, A'], [A, 0]] [dy; dnu] = [rhs_y; rhs_c]:    S = A H^-1 A',   S dnu = A H^-1 rhs_y - rhs_c,
                                                     H dy = rhs_y - A' dnu

which costs r + k solves with H. It needs H itself to be regular, more than the bordered matrix asks: elements where it
is not are flagged.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.linalg.dense import factor
from tacit.linalg.equilibrate import equilibrate
from tacit.linalg.structured import StructuredFactor, StructuredMatrix
from tacit.shapes import Bool, Float, Tensor

__all__ = ["BorderedSolution", "bordered_solve"]


@dataclass(frozen=True)
class BorderedSolution:
    """`dy` (b, m, k), `dnu` (b, r, k), the relative `residual` (b,), `rcond` (b,) the lesser of H's and S's, `ok` (b,).

    An element is not `ok`, and zero, when H or the Schur complement is singular to rounding, or not finite.
    """

    dy: Float[Tensor, "b m k"]
    dnu: Float[Tensor, "b r k"]
    residual: Float[Tensor, " b"]
    rcond: Float[Tensor, " b"]
    ok: Bool[Tensor, " b"]


def bordered_solve(
    H: StructuredMatrix | StructuredFactor,
    A: Float[Tensor, "b r m"],
    rhs_y: Float[Tensor, "b m k"],
    rhs_c: Float[Tensor, "b r k"],
) -> BorderedSolution:
    """Solve the bordered system with symmetric `H`; rows of `A` that do not take part are zero, and so is their `dnu`.

    >>> from tacit.linalg import DiagonalMatrix
    >>> H = DiagonalMatrix(torch.tensor([[1.0, 2.0]]))
    >>> A = torch.tensor([[[1.0, 1.0]]])
    >>> bordered_solve(H, A, torch.zeros(1, 2, 1), torch.tensor([[[3.0]]])).dy.flatten()
    tensor([2., 1.])
    """
    factored = H if isinstance(H, StructuredFactor) else H.factor()
    finite = A.isfinite().flatten(1).all(-1)
    A = torch.where(finite[:, None, None], A.detach(), 0.0)
    r = A.shape[1]
    absent = (A == 0).all(-1)
    spread = factored.solve(A.mT)
    S = A @ spread
    S = 0.5 * (S + S.mT) + torch.diag_embed(absent.to(S.dtype))
    border = factor(S, equilibrate(S))
    eps = torch.finfo(A.dtype).eps
    rcond = torch.minimum(factored.rcond, border.rcond)
    ok = finite & factored.ok & border.ok & (factored.rcond > eps) & (border.rcond > max(r, 1) * eps)

    def once(v: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        free = factored.solve(v)
        dnu = border.solve(torch.where(absent[:, :, None], 0.0, A @ free - c), S)
        return free - spread @ dnu, dnu

    def left(dy: Tensor, dnu: Tensor) -> tuple[Tensor, Tensor]:
        return rhs_y - factored.matrix.matvec(dy) - A.mT @ dnu, torch.where(absent[:, :, None], 0.0, rhs_c - A @ dy)

    dy, dnu = once(rhs_y, rhs_c)
    more_y, more_nu = once(*left(dy, dnu))
    keep = ok[:, None, None]
    dy, dnu = torch.where(keep, dy + more_y, 0.0), torch.where(keep, dnu + more_nu, 0.0)
    size = torch.maximum(_largest(rhs_y), _largest(rhs_c))
    rest_y, rest_c = left(dy, dnu)
    rest = torch.maximum(_largest(rest_y), _largest(rest_c))
    residual = torch.where(size > 0, rest / torch.where(size > 0, size, 1.0), 0.0)
    return BorderedSolution(dy, dnu, torch.where(ok, residual, float("inf")), torch.where(ok, rcond, 0.0), ok)


def _largest(v: Float[Tensor, "b n k"]) -> Float[Tensor, " b"]:
    return v.abs().flatten(1).amax(-1) if v[:1].numel() else v.new_zeros(v.shape[0])
