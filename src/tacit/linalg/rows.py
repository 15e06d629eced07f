"""A maximal independent subset of the rows of a batch of matrices.

Greedy, by orthogonalisation of rows taken to unit length: among the rows not yet explained by those chosen, the
preferred ones come first in the order of their indices, then the one that is explained least.
"""

from __future__ import annotations

import torch

from tacit.shapes import Bool, Float, Tensor

__all__ = ["independent_rows"]


def independent_rows(
    A: Float[Tensor, "b r m"],
    mask: Bool[Tensor, "b r"],
    first: Bool[Tensor, "b r"] | None = None,
    tol: float | None = None,
) -> Bool[Tensor, "b r"]:
    """Return which of the masked rows of `A` (b, r, m) to keep, so that they are independent and span the same space.

    Rows marked in `first` are preferred. A row of unit length counts as dependent when less than `tol` of it remains
    outside the span of the rows already kept; the default is `eps^(2/3)` of the dtype. Rows that are zero or not finite
    are never kept.

    >>> A = torch.tensor([[[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    >>> mask = torch.tensor([[True, True, True, True]])
    >>> independent_rows(A, mask, first=torch.tensor([[False, True, False, True]]))
    tensor([[False,  True, False,  True]])
    """
    b, r, m = A.shape
    if b == 0 or r == 0 or m == 0:
        return torch.zeros_like(mask)
    tol = float(torch.finfo(A.dtype).eps ** (2 / 3)) if tol is None else tol
    usable = mask & A.isfinite().all(-1)
    unit = _unit(torch.where(usable[:, :, None], A.detach(), 0.0))
    usable = usable & (unit.abs().amax(-1) > 0)
    plain = _plainly_independent(unit, usable, max(tol, 1e-3))
    keep = usable & plain[:, None]
    hard = (~plain).nonzero()[:, 0]
    if hard.numel():
        preferred = torch.zeros_like(mask[hard]) if first is None else first[hard]
        keep[hard] = _greedy(unit[hard], usable[hard], preferred, tol)
    return keep


def _plainly_independent(
    unit: Float[Tensor, "b r m"], usable: Bool[Tensor, "b r"], margin: float
) -> Bool[Tensor, " b"]:
    """Tell the elements of which every usable row has more than `margin` outside the span of those before it.

    There nothing is to choose, and one triangularisation costs a tenth of the greedy steps.
    """
    b, r, m = unit.shape
    if r > m:
        return torch.zeros(b, dtype=torch.bool, device=unit.device)
    R: Tensor = torch.linalg.qr(unit.mT, mode="r").R
    independent: Tensor = (R.diagonal(dim1=-2, dim2=-1).abs() > margin) | ~usable
    return independent.all(-1)


def _greedy(
    rest: Float[Tensor, "b r m"], candidates: Bool[Tensor, "b r"], first: Bool[Tensor, "b r"], tol: float
) -> Bool[Tensor, "b r"]:
    """Choose row by row; `rest` starts as the rows of unit length and holds what the chosen ones do not explain."""
    b, r, m = rest.shape
    keep = torch.zeros_like(candidates)
    # Above any length: the preferred rows in the order of their indices, before all others.
    bonus = first * (2.0 + torch.arange(r, 0, -1, dtype=rest.dtype, device=rest.device))
    chosen = rest.new_zeros(b, 0, m)
    for _ in range(min(r, m)):
        length = torch.linalg.vector_norm(rest, dim=-1)
        open_ = candidates & (length > tol)
        if not bool(open_.any()):
            break
        pick = torch.where(open_, length + bonus, -1.0).argmax(-1, keepdim=True)
        found = open_.gather(1, pick)
        q = rest.gather(1, pick[:, :, None].expand(b, 1, m)) * found[:, :, None]
        # What remains of a nearly dependent row has lost its orthogonality to the rows already chosen.
        q = _unit(q - (q @ chosen.mT) @ chosen)
        keep = keep.scatter(1, pick, keep.gather(1, pick) | found)
        candidates = candidates.scatter(1, pick, candidates.gather(1, pick) & ~found)
        rest = rest - (rest @ q.mT) @ q
        chosen = torch.cat([chosen, q], 1)
    return keep


def _unit(v: Float[Tensor, "b r m"]) -> Float[Tensor, "b r m"]:
    """Divide each row by its length, by its largest entry first so that nothing under- or overflows."""
    largest = v.abs().amax(-1, keepdim=True)
    v = v / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    return v / torch.where(length > 0, length, 1.0)
