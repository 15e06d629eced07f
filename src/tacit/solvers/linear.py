"""Linear systems as the solvers need them: symmetric, of any inertia, possibly singular, one bad element harmless."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.linalg.dense import factor
from tacit.linalg.equilibrate import equilibrate
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Symmetric", "bordered", "eigen", "factor_symmetric", "solve_or_least_norm"]


@dataclass(frozen=True)
class Symmetric:
    """A batch of symmetric matrices factored as `P L D L' P'`."""

    factors: Float[Tensor, "b N N"]
    pivots: Int[Tensor, "b N"]
    negative: Int[Tensor, " b"]
    singular: Bool[Tensor, " b"]

    def solve(self, v: Float[Tensor, "b N"]) -> Float[Tensor, "b N"]:
        """K^-1 v; garbage, but only its own, for a singular element."""
        return torch.linalg.ldl_solve(self.factors, self.pivots, v[:, :, None]).squeeze(-1)


def factor_symmetric(K: Float[Tensor, "b N N"]) -> Symmetric:
    """Factor and count the negative eigenvalues (each 2 x 2 pivot of Bunch and Kaufman holds exactly one)."""
    finite = K.isfinite().all(-1).all(-1)
    eye = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    factors, pivots, _ = torch.linalg.ldl_factor_ex(torch.where(finite[:, None, None], K, eye))
    diagonal = factors.diagonal(dim1=-2, dim2=-1)
    pair = pivots < 0
    negative = ((diagonal < 0) & ~pair).sum(-1) + pair.sum(-1) // 2
    singular = ((diagonal == 0) & ~pair).any(-1) | ~finite
    return Symmetric(factors, pivots, negative, singular)


def eigen(H: Float[Tensor, "b m m"]) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b m m"]]:
    """Eigenvalues and vectors of the symmetric part; those of the identity for an element that is not finite."""
    finite = H.isfinite().all(-1).all(-1)
    eye = torch.eye(H.shape[-1], dtype=H.dtype, device=H.device)
    values, vectors = torch.linalg.eigh(torch.where(finite[:, None, None], 0.5 * (H + H.mT), eye))
    return values, vectors


def bordered(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b r m"], corner: Float[Tensor, "b r"]
) -> Float[Tensor, "b N N"]:
    """[[H, A'], [A, diag(corner)]]."""
    top = torch.cat([H, A.mT], 2)
    return torch.cat([top, torch.cat([A, torch.diag_embed(corner)], 2)], 1)


def solve_or_least_norm(K: Float[Tensor, "b N N"], v: Float[Tensor, "b N"]) -> Float[Tensor, "b N"]:
    """K^-1 v, and the least-squares solution of least (scaled) norm where K is singular."""
    K = torch.where(K.isfinite().all(-1).all(-1)[:, None, None], K, 0.0)
    v = torch.where(v.isfinite().all(-1)[:, None], v, 0.0)
    N, eps = K.shape[-1], torch.finfo(K.dtype).eps
    scale = equilibrate(K)
    factored = factor(K, scale)
    w = factored.solve(v[:, :, None], K).squeeze(-1)
    poor = ~factored.ok | (factored.rcond < 10 * N * eps)
    if bool(poor.any()):
        s = scale[poor]
        values, vectors = eigen(s[:, :, None] * K[poor] * s[:, None, :])
        small = values.abs() <= 100 * N * eps * values.abs().amax(-1, keepdim=True)
        coefficients = torch.where(small, 0.0, (vectors.mT @ (s * v[poor])[:, :, None]).squeeze(-1) / values)
        w = w.clone()
        w[poor] = s * (vectors @ coefficients[:, :, None]).squeeze(-1)
    return w
