"""DDN[geometric] Section 4.5, "Geometric interpretation": scalar input x, one equality, as a projection.

    Dy = H^(-1/2) (b~ - (a^' b~) a^ + (c / |a~|) a^)        a~ = -H^(-1/2) a,  b~ = -H^(-1/2) b,  a^ = a~ / |a~|

with a = A', b = B, c = C of the equality proposition for n = p = 1. Domain: H positive definite, a != 0. With c = 0 the
unconstrained derivative `H^(-1/2) b~ = -H^-1 b` is bent by H^(1/2), projected, and bent back; c shifts it along with the
constraint.

Erratum: the text lets H^(-1/2) transform the tangent plane. Normals transform by H^(-1/2) (a becomes a~), and tangents by
H^(1/2): for a't = 0, a~' (H^(1/2) t) = -a't = 0.
"""

from __future__ import annotations

import torch

from tacit.shapes import Float, Tensor

__all__ = ["geometric", "power", "transformed_tangent"]


def power(H: Float[Tensor, "b m m"], exponent: float) -> Float[Tensor, "b m m"]:
    """H^exponent of a symmetric positive definite H; NaN for an element that is not one.

    >>> power(torch.diag_embed(torch.tensor([[4.0, 9.0]])), -0.5)[0].diagonal()
    tensor([0.5000, 0.3333])
    """
    finite = H.isfinite().all(-1).all(-1)[:, None, None]
    eye = torch.eye(H.shape[-1], dtype=H.dtype, device=H.device)
    values, V = torch.linalg.eigh(torch.where(finite, H, eye))
    positive = finite & (values > 0).all(-1)[:, None, None]
    root = V @ torch.diag_embed(values.clamp_min(torch.finfo(H.dtype).tiny) ** exponent) @ V.mT
    return torch.where(positive, root, torch.nan)


def geometric(
    H: Float[Tensor, "b m m"], a: Float[Tensor, "b m"], b: Float[Tensor, "b m"], c: Float[Tensor, " b"]
) -> Float[Tensor, "b m"]:
    """`Dy = H^(-1/2) (b~ - (a^' b~) a^ + (c / |a~|) a^)`.

    >>> H, a, b = torch.eye(2)[None], torch.tensor([[1.0, 0.0]]), torch.tensor([[-3.0, -4.0]])
    >>> geometric(H, a, b, torch.tensor([0.0])), geometric(H, a, b, torch.tensor([2.0]))
    (tensor([[0., 4.]]), tensor([[-2.,  4.]]))
    """
    root = power(H, -0.5)
    a_, b_ = -(root @ a[..., None])[..., 0], -(root @ b[..., None])[..., 0]
    length = a_.norm(dim=1, keepdim=True)
    a_hat = a_ / length
    inner = b_ - (a_hat * b_).sum(1, keepdim=True) * a_hat + (c[:, None] / length) * a_hat
    return (root @ inner[..., None])[..., 0]


def transformed_tangent(H: Float[Tensor, "b m m"], t: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
    """`H^(1/2) t`, orthogonal to a~ for every tangent t.

    >>> transformed_tangent(torch.diag_embed(torch.tensor([[4.0, 1.0]])), torch.tensor([[1.0, 1.0]]))
    tensor([[2., 1.]])
    """
    # Erratum: H^(1/2), where the text says H^(-1/2).
    return (power(H, 0.5) @ t[..., None])[..., 0]
