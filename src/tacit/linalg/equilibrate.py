"""Symmetric scaling of a batch of matrices, so that a linear solve sees no units.

Ruiz scaling: repeat `s_i <- s_i / sqrt(max_j s_i |K_ij| s_j)`. It halves the logarithm of the imbalance in each pass,
keeps symmetry, and needs no factorisation. The scales are rounded to powers of two: applying them is then exact.
"""

from __future__ import annotations

import torch

from tacit.shapes import Bool, Float, Tensor

__all__ = ["equilibrate"]


def equilibrate(
    K: Float[Tensor, "b N N"],
    iterations: int = 4,
    ignore_below: Float[Tensor, "b 1 1"] | float | None = None,
    ignore: Bool[Tensor, "b N N"] | None = None,
) -> Float[Tensor, "b N"]:
    """Return the scale `s` for which every row of `s_i K_ij s_j` has a largest entry near one.

    `K` is symmetric, `(b, N, N)`. Entries smaller than `ignore_below` (absolute; a number, or one an element) or
    marked in `ignore` do not count: rounding noise must not be blown up to one. Rows without an entry that counts keep
    scale 1, and so do all rows of an element that holds NaN or infinity.

    >>> K = torch.tensor([[[1e8, 2e3], [2e3, 1.0]]])
    >>> s = equilibrate(K)
    >>> (s[:, :, None] * K * s[:, None, :]).abs().amax(-1)
    tensor([[1.4901, 1.0000]])
    """
    weighted = K.detach().abs()
    # Everything happens in place: fresh memory of this size costs more than the arithmetic.
    if ignore_below is not None:
        # A product with the comparison, not `where`: ten times as fast. NaN stays NaN, which is wanted below.
        weighted.mul_(weighted >= ignore_below)
    if ignore is not None:
        weighted.mul_(~ignore)
    scale = weighted.new_ones(weighted.shape[:-1])
    if weighted.shape[-1] == 0:
        return scale
    largest = weighted.amax(-1)
    finite = largest.isfinite().all(-1, keepdim=True)
    for step in range(iterations):
        change = torch.where(largest > 0, largest.rsqrt(), 1.0)
        scale = scale * change
        if step + 1 < iterations:
            # Holds |K_ij| s_j; the row's own scale is left to the vector of maxima.
            largest = weighted.mul_(change[:, None, :]).amax(-1).mul_(scale)
    scale = torch.where(finite, scale, 1.0)
    return torch.exp2(scale.log2().round())
