"""The truncated quadratic's exact location on an accelerator: one program a row, every window in registers.

The row comes sorted. The places where points enter a window and where they leave it are two ascending sequences, which
one bitonic merge makes one; then prefix sums give every window's mass, mean and objective, and the best one wins. See
`exact_location.truncated_quadratic` for why no u can be missed. Claim key: DDN[robust-pooling].
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tacit.shapes import Float, Tensor

__all__ = ["locate_windows"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]


def locate_windows(x: Rows, alpha: Column, weight: Rows | None) -> Column:
    """Return the global minimiser of each row, of minimisers the left one. Rows with NaN are NaN."""
    y = torch.empty_like(alpha)
    r, n = x.shape
    if r == 0:
        return y
    s, order = x.sort(-1)
    mass = s if weight is None else weight.gather(-1, order)
    block = max(16, triton.next_power_of_2(n))
    with torch.cuda.device_of(x):
        _best_window[(r,)](
            s, mass, alpha.contiguous(), y, n,
            WEIGHTED=weight is not None, BLOCK=block, STEPS=block.bit_length() - 1,
            num_warps=min(16, max(1, block // 128)),
        )  # fmt: skip
    return y


@triton.jit
def _best_window(
    s_ptr, mass_ptr, alpha_ptr, y_ptr, n,
    WEIGHTED: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * n + at, mask=at < n, other=float("inf"))
    before = tl.load(s_ptr + row * n + at - 1, mask=(at > 0) & (at < n), other=float("inf"))
    alpha = tl.load(alpha_ptr + row).to(tl.float64)
    lost = tl.max((s != s).to(tl.int32)) > 0
    seen = tl.abs(s) < float("inf")  # a point at infinity is an outlier like any other
    if WEIGHTED:
        w = tl.where(seen, tl.load(mass_ptr + row * n + at, mask=at < n, other=0.0), 0.0).to(tl.float64)
        w = w / tl.max(w)  # the squares of very large or small weights are lost
        least = 1e-12
    else:
        w = seen.to(tl.float64)
        least = 0.5

    # Prefix sums of gaps keep the digits of points far from 0; and as no window spans a gap over 2 alpha, longer ones
    # are shrunk, which keeps the sums small.
    s = tl.where(seen, s, 0.0).to(tl.float64)
    gap = tl.where(seen & (tl.abs(before) < float("inf")), (s - before.to(tl.float64)) / alpha, 3.0)
    t = tl.cumsum(tl.where(at > 0, tl.minimum(gap, 3.0), 0.0), 0)
    # On a grid of 2**-37 a point comes and goes with the same number, which leaves nothing behind when it has gone.
    t = (t + 49152.0) - 49152.0
    event, signed = _merge(t - 1.0, w, tl.flip(t + 1.0, 0), -tl.flip(w, 0), BLOCK, STEPS)

    place = event + tl.where(signed > 0, 1.0, -1.0)  # of the point whose event this is
    mass = tl.maximum(tl.cumsum(signed, 0), least)  # between clusters only rounding is left, which must not win
    part = signed * place
    moment = tl.cumsum(part, 0)
    depth = tl.cumsum(part * place - signed, 0) - moment * moment / mass
    best = tl.argmin(depth, 0)
    center = tl.sum(tl.where(tl.arange(0, 2 * BLOCK) == best, moment / mass, 0.0))

    # Back to the numbers of the row: from the point nearest to the centre, then one exact mean of what is seen.
    nearest = tl.argmin(tl.where(seen, tl.abs(t - center), float("inf")), 0)
    y = tl.sum(tl.where(at == nearest, s + alpha * (center - t), 0.0))
    z = s - y
    inside = tl.where(tl.abs(z) <= alpha, w, 0.0)
    total = tl.sum(inside)
    y = tl.where(total > 0, y + tl.sum(inside * z) / total, y)
    pointless = lost | (tl.max(seen.to(tl.int32)) == 0)
    tl.store(y_ptr + row, tl.where(pointless, float("nan"), y).to(y_ptr.dtype.element_ty))


@triton.jit
def _merge(a, a_mass, b, b_mass, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """Return ascending a and descending b as one ascending sequence, with the masses that travel along."""
    key, mass = _exchange(_joined(a, b, BLOCK, BLOCK), _joined(a_mass, b_mass, BLOCK, BLOCK), BLOCK, BLOCK)
    for step in tl.static_range(STEPS):
        key, mass = _exchange(key, mass, BLOCK, BLOCK >> (step + 1))
    return key, mass


@triton.jit
def _exchange(key, mass, BLOCK: tl.constexpr, STRIDE: tl.constexpr):
    """Put every two that lie STRIDE apart in order."""
    a, b = _parted(key, BLOCK, STRIDE)
    a_mass, b_mass = _parted(mass, BLOCK, STRIDE)
    swap = a > b
    key = _joined(tl.where(swap, b, a), tl.where(swap, a, b), BLOCK, STRIDE)
    return key, _joined(tl.where(swap, b_mass, a_mass), tl.where(swap, a_mass, b_mass), BLOCK, STRIDE)


@triton.jit
def _parted(x, BLOCK: tl.constexpr, STRIDE: tl.constexpr):
    return tl.split(tl.permute(tl.reshape(x, (BLOCK // STRIDE, 2, STRIDE)), (0, 2, 1)))


@triton.jit
def _joined(a, b, BLOCK: tl.constexpr, STRIDE: tl.constexpr):
    a, b = tl.reshape(a, (BLOCK // STRIDE, STRIDE)), tl.reshape(b, (BLOCK // STRIDE, STRIDE))
    return tl.reshape(tl.permute(tl.join(a, b), (0, 2, 1)), (2 * BLOCK,))
