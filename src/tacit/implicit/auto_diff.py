"""DDN[auto-diff] Section 6.2, "Automatic differentiation": Dy from nothing but the functions f, h, g and a solution.

    f_Y = grad(f, 1);  f_YY = jacobian(f_Y, 1);  f_XY = jacobian(f_Y, 0);  Dy = -solve(f_YY(x, y), f_XY(x, y))

One sample, vectors x `(n,)` and y `(m,)`, as the paper writes it; what it omits "for brevity", the constrained case, follows
it. Domain: that of the propositions, `unconstrained.py` and `equality.py`. Batches by `torch.vmap`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.func import grad, jacrev

from tacit.implicit.equality import equality, multipliers
from tacit.implicit.unconstrained import unconstrained
from tacit.shapes import Float, Tensor

__all__ = ["gradient", "gradient_with_constraints"]

Function = Callable[[Tensor, Tensor], Tensor]


def gradient(f: Function, x: Float[Tensor, " n"], y: Float[Tensor, " m"]) -> Float[Tensor, "m n"]:
    """Dy of an unconstrained problem.

    >>> gradient(lambda x, u: 0.5 * (u - x).square().sum(), torch.tensor([1.0, 3.0]), torch.tensor([2.0]))
    tensor([[0.5000, 0.5000]])
    """
    f_Y = grad(f, 1)
    f_YY = jacrev(f_Y, 1)
    f_XY = jacrev(f_Y, 0)
    return unconstrained(f_YY(x, y)[None], f_XY(x, y)[None])[0]


def gradient_with_constraints(
    f: Function, rows: Function, x: Float[Tensor, " n"], y: Float[Tensor, " m"]
) -> Float[Tensor, "m n"]:
    """Dy with equalities and active inequalities, stacked by `rows`; lam from `lam' A = D_Y f`.

    >>> line = lambda x, u: (u.sum() - x.sum())[None]
    >>> gradient_with_constraints(lambda x, u: u.square().sum(), line, torch.tensor([2.0]), torch.tensor([1.0, 1.0]))
    tensor([[0.5000],
            [0.5000]])
    """
    A, C = jacrev(rows, 1)(x, y), jacrev(rows, 0)(x, y)
    lam = multipliers(A[None], grad(f, 1)(x, y)[None])[0].detach()

    def lagrangian(x: Tensor, u: Tensor) -> Tensor:
        return f(x, u) - torch.dot(lam, rows(x, u))

    L_Y = grad(lagrangian, 1)
    return equality(jacrev(L_Y, 1)(x, y)[None], A[None], jacrev(L_Y, 0)(x, y)[None], C[None])[0]
