"""Robust locations on an accelerator: one program a row, which reads it once and iterates in registers until done.

    Huber, pseudo-Huber   Newton inside a shrinking bracket; of an interval of minimisers, its midpoint
    Welsch                every mode: the slope's sign on a grid of alpha / 4 wherever a point is within alpha,
                          a bracketed Newton wherever it turns, the highest mode kept

A row stops when it is done, so no flag has to travel to the host, and the queue never stalls. Between neighbours on
the grid no mode is missed that matters: the logarithm of the Welsch density bends by no more than -1 / alpha^2, so a
mode stands less than 1 % above the grid, and none lies further than alpha from every point. Where Triton is missing,
`location` searches in plain torch. Claim key: DDN[robust-pooling].
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tacit.nn.functional.window_kernel import locate_windows
from tacit.shapes import Float, Tensor

__all__ = ["PENALTIES", "locate_rows"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]

PENALTIES = ("huber", "pseudo_huber", "welsch", "truncated_quadratic")


def locate_rows(x: Rows, alpha: Column, weight: Rows | None, start: Column, penalty: str) -> Column:
    """Return the global minimiser of each row; `start` is a guess near the bulk. Rows with NaN are NaN."""
    if penalty == "truncated_quadratic":
        return locate_windows(x, alpha, weight)
    x, alpha, start = x.contiguous(), alpha.contiguous(), start.contiguous()
    mass = x if weight is None else weight.contiguous()
    y = torch.empty_like(start)
    r, n = x.shape
    if r == 0:
        return y
    block = triton.next_power_of_2(n)
    info = torch.finfo(x.dtype)
    kernel = _welsch if penalty == "welsch" else _convex
    options = {} if penalty == "welsch" else {"HUBER": penalty == "huber"}
    with torch.cuda.device_of(x):
        kernel[(r,)](
            x, alpha, mass, start, y, n, info.eps, info.max**0.24,
            WEIGHTED=weight is not None, BLOCK=block, num_warps=min(16, max(1, block // 512)), **options,
        )  # fmt: skip
    return y


@triton.jit
def _read_row(x_ptr, alpha_ptr, weight_ptr, start_ptr, n, limit, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    if WEIGHTED:
        w = tl.load(weight_ptr + row * n + at, mask=at < n, other=0.0)
    else:
        w = (at < n).to(x.dtype)
    lost = tl.sum(tl.where((at < n) & (x != x), 1, 0)) > 0
    seen = (w > 0) & (tl.abs(x) < limit * limit * limit * limit)  # a point at infinity is an outlier like any other
    return x, w, tl.load(alpha_ptr + row), tl.load(start_ptr + row), seen, lost


@triton.jit
def _convex(
    x_ptr, alpha_ptr, weight_ptr, start_ptr, y_ptr, n, eps, limit,
    WEIGHTED: tl.constexpr, BLOCK: tl.constexpr, HUBER: tl.constexpr,
):  # fmt: skip
    x, w, alpha, y, seen, lost = _read_row(x_ptr, alpha_ptr, weight_ptr, start_ptr, n, limit, WEIGHTED, BLOCK)
    low = tl.min(tl.where(seen, x, float("inf")))
    high = tl.max(tl.where(seen, x, float("-inf")))
    y = tl.where(y == y, y, low)
    y = tl.minimum(tl.maximum(y, low), high)
    previous = high - low
    g = y * 0.0
    count = 0
    while count < 400:
        z = y - x
        if HUBER:
            inside = tl.abs(z) <= alpha
            # The saturated points are counted, not summed: equal numbers on both sides then cancel exactly.
            sides = tl.where(z > alpha, w, tl.where(z < -alpha, -w, 0.0))
            g = alpha * tl.sum(sides) + tl.sum(tl.where(inside, w * z, 0.0))
            h = tl.sum(tl.where(inside, w, 0.0))
        else:
            q = tl.minimum(tl.maximum(z / alpha, -limit), limit)
            root = 1.0 / tl.sqrt(1.0 + q * q)
            g = alpha * tl.sum(w * q * root)
            h = tl.sum(w * root * root * root)
        low = tl.where(g <= 0, y, low)
        high = tl.where(g >= 0, y, high)
        newton = y - g / h
        trusted = (newton > low) & (newton < high) & (tl.abs(newton - y) <= 0.5 * previous)
        new = tl.where(g == 0, y, tl.where(trusted, newton, 0.5 * low + 0.5 * high))
        previous = tl.abs(new - y)
        y = new
        short = (previous <= 2 * eps * tl.abs(y)) | (previous <= 2 * eps * alpha) | (g != g)
        count = tl.where(short, 400, count + 1)
    if HUBER:
        y = _middle(x, w, alpha, y, eps)
    tl.store(y_ptr + tl.program_id(0), tl.where(lost, float("nan"), y))


@triton.jit
def _middle(x, w, alpha, y, eps):
    """Return y, or the midpoint of the interval around it on which Huber's slope is zero."""
    z = y - x
    margin = 16 * eps * (alpha + tl.abs(y))
    inside = tl.abs(z) <= alpha
    sides = tl.sum(tl.where(z > alpha + margin, w, tl.where(z < -alpha - margin, -w, 0.0)))
    edges = tl.sum(tl.where(tl.abs(tl.abs(z) - alpha) <= margin, w * tl.where(z > 0, 1.0, -1.0), 0.0))
    strict = tl.sum(tl.where(tl.abs(z) < alpha - margin, w, 0.0))
    noise = 4 * eps * (tl.sum(w) + tl.sum(tl.where(inside, w, 0.0)))
    level = (strict == 0) & (tl.abs(sides + edges) <= noise)
    # A point at the edge bends the slope on the side from which it is nearer.
    entering = tl.sum(tl.where(tl.abs(z + alpha) <= margin, w, 0.0)) > 0
    leaving = tl.sum(tl.where(tl.abs(z - alpha) <= margin, w, 0.0)) > 0
    right = tl.min(tl.where((w > 0) & (z < -alpha - margin), x - alpha, float("inf")))
    left = tl.max(tl.where((w > 0) & (z > alpha + margin), x + alpha, float("-inf")))
    right = tl.where(level & (entering == 0) & (right < float("inf")), right, y)
    left = tl.where(level & (leaving == 0) & (left > float("-inf")), left, y)
    return 0.5 * left + 0.5 * right


@triton.jit
def _density(x, w, inverse, u, limit):
    """Return height, slope and curvature (in alphas) of sum_i w_i exp(-q_i^2 / 2) at u."""
    q = tl.minimum(tl.maximum((u - x) * inverse, -limit), limit)
    e = w * tl.exp(-0.5 * q * q)
    return tl.sum(e), -tl.sum(e * q), tl.sum(e * (q * q - 1.0))


@triton.jit
def _welsch(
    x_ptr, alpha_ptr, weight_ptr, start_ptr, y_ptr, n, eps, limit,
    WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    x, w, alpha, start, seen, lost = _read_row(x_ptr, alpha_ptr, weight_ptr, start_ptr, n, limit, WEIGHTED, BLOCK)
    inverse = 1.0 / alpha
    u = tl.min(tl.where(seen, x, float("inf")))
    last = tl.max(tl.where(seen, x, float("-inf")))
    y = tl.where(u <= last, u, start)
    height, slope, _ = _density(x, w, inverse, u, limit)
    best = height
    count = tl.where((u <= last) & (lost == 0) & (alpha > 0), 0, 10 * n + 10)
    while count < 10 * n + 10:
        new = u + 0.25 * alpha
        near = tl.min(tl.where(seen & (x >= new - alpha), x, float("inf")))
        new = tl.where(near > new + alpha, near - alpha, new)
        if new <= u:  # alpha is lost in rounding: from point to point
            new = tl.min(tl.where(seen & (x > u), x, float("inf")))
        if (near == float("inf")) | (new == float("inf")):
            count = 10 * n + 10
            new = u
        new_height, new_slope, _ = _density(x, w, inverse, new, limit)
        if (new_height > best) & (new_slope == 0):
            best, y = new_height, new
        if (slope >= 0) & (new_slope < 0) & (1.01 * tl.maximum(height, new_height) >= best):
            mode, top = _climb(x, w, alpha, u, new, eps, limit)
            y = tl.where(top > best, mode, y)
            best = tl.maximum(top, best)
        u, height, slope = new, new_height, new_slope
        count += 1
    tl.store(y_ptr + tl.program_id(0), tl.where(lost, float("nan"), y))


@triton.jit
def _climb(x, w, alpha, low, high, eps, limit):
    """Return the mode between low, where the density rises, and high, where it falls, and its height."""
    inverse = 1.0 / alpha
    y = 0.5 * low + 0.5 * high
    previous = high - low
    top = y * 0.0
    count = 0
    while count < 100:
        top, slope, curvature = _density(x, w, inverse, y, limit)
        low = tl.where(slope >= 0, y, low)
        high = tl.where(slope <= 0, y, high)
        newton = y - alpha * (slope / curvature)
        trusted = (newton > low) & (newton < high) & (tl.abs(newton - y) <= 0.5 * previous)
        new = tl.where(slope == 0, y, tl.where(trusted, newton, 0.5 * low + 0.5 * high))
        previous = tl.abs(new - y)
        y = new
        short = (previous <= 2 * eps * tl.abs(y)) | (previous <= 2 * eps * alpha) | (slope != slope)
        count = tl.where(short, 100, count + 1)
    return y, top
