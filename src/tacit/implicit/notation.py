"""DDN[notation] The paper's conventions (section 3, "Notation"), and the inverse that its formulas are written with.

    f: R^n -> R^m      D f in R^(m x n),  (D f)_ij = d f_i / d x_j        D(g o f) = D g(f) D f
    D_XY^2 f = D_X (D_Y f)'  in R^(m x n)                                  D f = D_X f + D_Y f Dy   along y(x)

Every formula of the neighbouring files takes the letters as a batch: H `(b, m, m)`, A `(b, p, m)`, B `(b, m, n)`,
C `(b, p, n)`, with `L = f - lam' h`, and returns Dy `(b, m, n)`. They are the statements as printed, H^-1 included, and
so hold on their stated domains only; what the library computes with is `kkt.py`, which asks for less.
"""

from __future__ import annotations

import torch

from tacit.problem import Instance
from tacit.problem.letters import input_letters, letters
from tacit.shapes import Float, Tensor

__all__ = ["inverse", "paper_letters"]


def inverse(M: Float[Tensor, "*batch k k"]) -> Float[Tensor, "*batch k k"]:
    """M^-1, element by element; NaN for an element that has none, so that a formula used outside its domain shows it.

    >>> inverse(torch.tensor([[[2.0]], [[0.0]]])).flatten()
    tensor([0.5000,    nan])
    """
    eye = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    finite = M.isfinite().all(-1).all(-1)[..., None, None]
    found, info = torch.linalg.inv_ex(torch.where(finite, M, eye))
    return torch.where(finite & (info == 0)[..., None, None], found, torch.nan)


def paper_letters(
    instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], position: int = 0
) -> tuple[Float[Tensor, "b m m"], Float[Tensor, "b r m"], Float[Tensor, "b m n"], Float[Tensor, "b r n"]]:
    """H, A, B, C at `(x, y, lam)`, every row of `[h; g]` among them, for the input at `position`.

    >>> from tacit.problem import Problem
    >>> x, y = torch.tensor([[1.0, 3.0]]), torch.tensor([[2.0]])
    >>> mean = Instance.bind(Problem(lambda x, u: 0.5 * (u - x).square().sum()), (x,), (0,), y)
    >>> H, A, B, C = paper_letters(mean, y, torch.zeros(1, 0))
    >>> H, B
    (tensor([[[2.]]]), tensor([[[-1., -1.]]]))
    """
    in_y, in_x = letters(instance, y, lam), input_letters(instance, y, lam, position)
    return in_y.H, in_y.A, in_x.B, in_x.C
