"""A cone program as rows that are smooth where they hold, so that the engine of every other problem differentiates it.

    minimise 1/2 x'Px + c'x   subject to   s = b - A x in a product of cones

Where the slack s of a second-order cone is at the boundary, `1/2 (|s_1..|^2 - s_0^2) = 0` is the row that holds; where
it is at the apex, every `s_i = 0` is; inside, none is. So each such cone has rows of both kinds, and which of them take
part is said sample by sample. At the boundary of an exponential cone, `s_1 exp(s_0 / s_1) - s_2 = 0` holds.

Unknowns that nobody asks for may be free (a bound on the value of a constraint that does not hold): W says along which
directions, and `1/2 |W (x - x_0)|^2` keeps them where they were found.
"""

from __future__ import annotations

import torch

from tacit.problem.problem import Problem
from tacit.shapes import Float, Shaped, Tensor
from tacit.solvers.external.clarabel import Cones

__all__ = ["count_rows", "declared", "exponential_gap", "split", "square_gap"]


def split(s: Shaped[Tensor, "*b m"], cones: Cones) -> tuple[Tensor, Tensor, list[Tensor], Shaped[Tensor, "*b e 3"]]:
    """What belongs to the zero cone, to the nonnegative one, to each second-order and to all exponential ones."""
    zero, nonnegative, *rest = s.split([cones.zero, cones.nonnegative, *cones.second_order, 3 * cones.exponential], -1)
    return zero, nonnegative, rest[:-1], rest[-1].unflatten(-1, (cones.exponential, 3))


def square_gap(s: Float[Tensor, "*b k"]) -> Float[Tensor, "*b"]:
    """Negative inside a second-order cone, zero on its boundary, and smooth at its apex."""
    return 0.5 * (s[..., 1:].square().sum(-1) - s[..., 0].square())


def exponential_gap(s: Float[Tensor, "*b e 3"]) -> Float[Tensor, "*b e"]:
    """Negative inside an exponential cone and zero on the curved part of its boundary."""
    off = s[..., 1] <= 0
    height = torch.where(off, 1.0, s[..., 1])
    return torch.where(off, 0.0, height * torch.exp(s[..., 0] / height)) - s[..., 2]


def count_rows(cones: Cones) -> tuple[int, int]:
    """How many equalities and inequalities the declaration has."""
    return cones.zero + sum(cones.second_order), cones.nonnegative + len(cones.second_order) + cones.exponential


def declared(cones: Cones) -> Problem:
    """The declaration: inputs `P, c, A, b, W, x_0`, unknown `x (n,)`.

    Equalities: the zero cone, then every row of every second-order cone (they hold at its apex alone). Inequalities:
    the nonnegative cone, one row for each second-order cone, one for each exponential cone.
    """

    def objective(P: Tensor, c: Tensor, A: Tensor, b: Tensor, W: Tensor, x_0: Tensor, x: Tensor) -> Tensor:
        return 0.5 * torch.dot(x, P @ x) + torch.dot(c, x) + 0.5 * (W @ (x - x_0)).square().sum()

    def equality(P: Tensor, c: Tensor, A: Tensor, b: Tensor, W: Tensor, x_0: Tensor, x: Tensor) -> Tensor:
        zero, _, second_order, _ = split(A @ x - b, cones)
        return torch.cat([zero, *second_order])

    def inequality(P: Tensor, c: Tensor, A: Tensor, b: Tensor, W: Tensor, x_0: Tensor, x: Tensor) -> Tensor:
        _, nonnegative, second_order, exponential = split(b - A @ x, cones)
        return torch.cat([-nonnegative, *(square_gap(s)[None] for s in second_order), exponential_gap(exponential)])

    p, q = count_rows(cones)
    return Problem(objective, equality if p else None, inequality if q else None)
