"""The letters of the paper, born here and nowhere else: f_Y, H, A (derivatives in y) and B, C (derivatives in x).

With `L = f - lam' [h; g]` at `(x, y, lam)`, rows `[h; g]` stacked:

    f_Y = D_Y f      A = D_Y [h; g]      H = D_YY L      B = D_XY L      C = D_X [h; g]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.func import grad, jacrev

from tacit.problem.instance import Instance
from tacit.shapes import Float, Tensor

__all__ = ["InputLetters", "Letters", "input_letters", "letters", "stacked_residual", "stationarity"]


@dataclass(frozen=True)
class Letters:
    """Derivatives in y at one point: `L_Y = f_Y - lam' A`, the Hessian `H` of the Lagrangian, the rows and their `A`."""

    L_Y: Float[Tensor, "b m"]
    rows: Float[Tensor, "b r"]
    H: Float[Tensor, "b m m"]
    A: Float[Tensor, "b r m"]


@dataclass(frozen=True)
class InputLetters:
    """Derivatives in one input x, flattened: `B (b, m, n)` and `C (b, r, n)`."""

    B: Float[Tensor, "b m n"]
    C: Float[Tensor, "b r n"]


def stationarity(instance: Instance, u: Tensor, lam: Tensor, *xs: Any) -> Tensor:
    """The residual of one sample, `[L_Y; rows]`, whose derivatives in u are `[H; A]` and in x are `[B; C]`."""
    L_Y = grad(instance.sample_lagrangian)(u, lam, *xs)
    return torch.cat([L_Y, instance.sample_rows(u, *xs)]) if instance.r else L_Y


def stacked_residual(instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]) -> Float[Tensor, "b N"]:
    """`[L_Y; rows]` of every sample."""
    return instance.map(lambda u, lam, *xs: stationarity(instance, u, lam, *xs), y, lam)


def letters(instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]) -> Letters:
    """Evaluate all derivatives in y at once; H and A are the rows of one reverse sweep."""

    def residual(u: Tensor, lam: Tensor, *xs: Any) -> tuple[Tensor, Tensor]:
        value = stationarity(instance, u, lam, *xs)
        return value, value

    jacobian, value = instance.map(jacrev(residual, has_aux=True), y, lam)
    m = instance.m
    return Letters(L_Y=value[:, :m], rows=value[:, m:], H=jacobian[:, :m], A=jacobian[:, m:])


def input_letters(
    instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], position: int
) -> InputLetters:
    """B and C for the input at `position`, formed in full: for small problems, reports and the paper's own formulas."""

    def residual(u: Tensor, lam: Tensor, *xs: Any) -> Tensor:
        return stationarity(instance, u, lam, *xs)

    jacobian = instance.map(jacrev(residual, argnums=2 + position), y, lam)
    flat = jacobian.reshape(instance.batch, instance.m + instance.r, -1)
    return InputLetters(B=flat[:, : instance.m], C=flat[:, instance.m :])
