"""Solves with K that can be differentiated again: the same numbers as the factorisation, with K attached."""

from __future__ import annotations

import torch

from tacit.implicit.kkt import Linearisation, kkt_matrix, kkt_residual
from tacit.problem import Instance
from tacit.problem.letters import letters
from tacit.shapes import Float, Tensor

__all__ = ["attach", "solve_attached"]


def solve_attached(
    instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], known: Linearisation, v: Float[Tensor, "b N k"]
) -> Float[Tensor, "b N k"]:
    """K^-1 v with the graph of K kept, so that derivatives of any order follow.

    At special samples the generalised inverse is held fixed: a singular point has no second derivative to get right.
    """
    found = letters(instance, y, lam)
    return _solve(kkt_matrix(found.H, found.A, known.keep), known, v, transpose=True)


def attach(
    instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], known: Linearisation, order: int
) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b r"]]:
    """Give a detached solution its derivatives by Newton steps written in plain operations.

    The step `z - K(x, z)^-1 R(x, z)` leaves a converged z where it is; each one doubles the order of the derivatives that
    are right, so that forward mode works at any nesting.
    """
    m = instance.m
    right = 0
    while right < order:
        found = letters(instance, y, lam)
        step = _solve(
            kkt_matrix(found.H, found.A, known.keep), known, kkt_residual(found, known.keep)[..., None], transpose=False
        )[..., 0]
        y, lam = y - step[:, :m], lam + step[:, m:]
        right = 2 * right + 1
    return y, lam


def _solve(K: Tensor, known: Linearisation, v: Tensor, *, transpose: bool) -> Tensor:
    aside = (known.special | known.dead)[:, None, None]
    scale = known.factor.scale[..., None]
    eye = torch.eye(K.shape[1], dtype=K.dtype, device=K.device)
    w = scale * torch.linalg.solve_ex(torch.where(aside, eye, scale * K * scale.mT), scale * v)[0]
    if known.inverse is not None:
        inverse = known.inverse.mT if transpose else known.inverse
        w = torch.where(known.special[:, None, None], inverse @ v, w)
    return torch.where(known.dead[:, None, None], 0.0, w)
