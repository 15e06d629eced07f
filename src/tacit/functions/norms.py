"""Lp norms of a vector: value, gradient and Hessian, as the paper's projection table has them.

    h(u) = ||u||_p,   D h(u) = sign(u_i) |u_i|^{p-1} / ||u||_p^{p-1}

with D h = sign(u) for p = 1 and D h = 1[i in I*] sign(u_i) for p = infinity, I* the largest coordinates, all of
them at a tie: a direction of the subdifferential, unscaled, as printed. Claim key: DDN[lp-projection].
"""

from __future__ import annotations

import math

import torch

from tacit.shapes import Float, Tensor

__all__ = ["lp_norm", "lp_norm_gradient", "lp_norm_hessian"]


def lp_norm(u: Float[Tensor, "*b n"], p: float) -> Float[Tensor, "*b"]:
    """Return ||u||_p along the last dim, p >= 1 or infinity.

    >>> lp_norm(torch.tensor([3.0, -4.0]), 2)
    tensor(5.)
    """
    return torch.linalg.vector_norm(u, ord=p, dim=-1)


def lp_norm_gradient(u: Float[Tensor, "*b n"], p: float) -> Float[Tensor, "*b n"]:
    """Return D h(u); zeros stay zero, which for u = 0 is the least-norm subgradient.

    >>> lp_norm_gradient(torch.tensor([3.0, -4.0]), math.inf)
    tensor([ 0., -1.])
    """
    if p == 1:
        return u.sign()
    size = u.abs()
    if math.isinf(p):
        return torch.where(size >= size.amax(-1, keepdim=True), u.sign(), 0.0)
    norm = lp_norm(u, p)[..., None]
    return u.sign() * (size / torch.where(norm > 0, norm, 1.0)).pow(p - 1)


def lp_norm_hessian(u: Float[Tensor, "*b n"], p: float) -> Float[Tensor, "*b n n"]:
    """Return D^2 h(u): zero for p = 1 and infinity, (p - 1) (diag|v|^{p-2} - g g') / ||u||_p with v = u/||u||_p else.

    >>> lp_norm_hessian(torch.tensor([1.0, 0.0]), 2)
    tensor([[0., 0.],
            [0., 1.]])
    """
    n = u.shape[-1]
    if p == 1 or math.isinf(p):
        return u.new_zeros(*u.shape, n)
    norm = lp_norm(u, p)[..., None, None]
    gradient = lp_norm_gradient(u, p)
    diagonal = torch.diag_embed((u / norm[..., 0]).abs().pow(p - 2))
    return (p - 1) * (diagonal - gradient[..., :, None] * gradient[..., None, :]) / norm
