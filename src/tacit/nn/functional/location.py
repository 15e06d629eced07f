"""Where the robust location is found: a quick search that knows when it is unsure, then the exact one.

The quick search is a fixed number of passes over a row without sorting, in plain torch, so that `torch.compile` fuses
it into one kernel that reads a row once. It returns the location and the rows for which that is not proven (convex) or
not clear (Welsch); those go to `exact_location`. Rows are independent throughout. Claim key: DDN[robust-pooling].
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch

from tacit.functions.penalties import PENALTIES, Penalty
from tacit.nn.functional import exact_location
from tacit.nn.functional.exact_location import total
from tacit.shapes import Bool, Float, Tensor

__all__ = ["locate"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]
Quick = tuple[Column, Bool[Tensor, "r 1"]]

_CHUNK = 1 << 17  # numbers handled at once when eager: they stay in the cache, and scratch memory stays small


def locate(x: Rows, alpha: Column, weight: Rows | None, penalty: Penalty, search: str) -> Column:
    """Return the location of each row, (r, 1).

    `search="global"` is the global minimiser; `"paper"` starts at the mean and the median, descends from each and
    keeps the better, as the paper did for its two penalties that are not convex. No weight in a row: 0, the minimiser
    of smallest norm when everything minimises. Negative weights or alpha <= 0: NaN, in that row.
    """
    if search == "paper":
        y = _chunked(lambda x, a, w: (_from_mean_and_median(x, a, w, penalty),), x, alpha, weight)[0]
    elif penalty == PENALTIES["quadratic"]:
        y = _mean(x, weight)
    elif PENALTIES.get(penalty.name) != penalty:
        y = _chunked(lambda x, a, w: (_search_unknown(x, a, w, penalty),), x, alpha, weight)[0]
    elif penalty.name == "truncated_quadratic":
        y = _exact(x, alpha, weight, x[:, :1], torch.ones_like(x[:, :1], dtype=torch.bool), penalty.name)
    else:
        quick = {"pseudo_huber": _pseudo_huber, "huber": _huber, "welsch": _welsch}[penalty.name]
        start, unsure = _chunked(quick, x, alpha, weight)
        y = _exact(x, alpha, weight, start, unsure, penalty.name)
    if weight is not None:
        heavy = weight.sum(-1, keepdim=True)
        y = torch.where(heavy == 0, 0.0, y)
        y = torch.where((weight < 0).any(-1, keepdim=True), torch.nan, y)
    return torch.where(alpha > 0, y, torch.nan)


def _chunked(
    search: Callable[[Rows, Column, Rows | None], tuple[Tensor, ...]], x: Rows, alpha: Column, weight: Rows | None
) -> tuple[Tensor, ...]:
    """Return search(x, alpha, weight), some rows at a time."""
    size = max(1, _CHUNK // x.shape[-1])
    if x.shape[0] <= size or torch.compiler.is_compiling():
        return search(x, alpha, weight)
    weights = itertools.repeat(None) if weight is None else weight.split(size)
    parts = [search(*rows) for rows in zip(x.split(size), alpha.split(size), weights, strict=False)]
    return tuple(torch.cat(columns) for columns in zip(*parts, strict=True))


def _mean(x: Rows, weight: Rows | None) -> Column:
    if weight is None:
        return x.mean(-1, keepdim=True)
    return torch.linalg.vecdot(x, weight)[..., None] / weight.sum(-1, keepdim=True)


def _start(x: Rows, weight: Rows | None) -> Column:
    """Return the median of fifteen points of the row that have weight: near the bulk, whatever the outliers."""
    step = -(-x.shape[-1] // 15)
    sample = x[:, ::step]
    if weight is None:
        return sample.nanmedian(-1, keepdim=True).values
    median = torch.where(weight[:, ::step] > 0, sample, torch.nan).nanmedian(-1, keepdim=True).values
    return torch.where(median.isnan(), _mean(x, weight), median)


def _pseudo_huber(x: Rows, alpha: Column, weight: Rows | None) -> Quick:
    """Four Halley steps; sure where the last was so short that the next would be lost in rounding.

    The curvature changes by at most 3/2 of its own size over a step of alpha, so a short step means a near root,
    however flat the objective: this test cannot be fooled.
    """
    eps = torch.finfo(x.dtype).eps
    limit = torch.finfo(x.dtype).max ** 0.24
    inverse = 1 / alpha
    y = _start(x, weight)
    step = y
    for _ in range(4):
        q = ((y - x) * inverse).clamp(-limit, limit)
        r = torch.rsqrt(1 + q * q)
        slope = q * r
        g = total(slope, weight)
        h = total(r * r * r, weight)
        t = -3 * total(slope * (r * r) * (r * r), weight)
        step = alpha * (g / (h - 0.5 * g * t / h))
        y = y - step
    sure = step.abs() <= torch.maximum(0.3 * eps ** (1 / 3) * alpha, 4 * eps * y.abs())
    return y, ~sure


def _huber(x: Rows, alpha: Column, weight: Rows | None) -> Quick:
    """Six Newton steps on the piecewise linear slope; sure where the last found its own piece again.

    The minimiser is unique where a point lies strictly within alpha of it; where none does, the set of minimisers may
    be an interval, and the row is left to the exact search.
    """
    eps = torch.finfo(x.dtype).eps
    y = _start(x, weight)
    step = y
    for _ in range(6):
        z = y - x
        g = total(torch.minimum(torch.maximum(z, -alpha), alpha), weight)
        h = total((z.abs() <= alpha).to(x.dtype), weight)
        step = g / h
        y = y - step
    margin = 16 * eps * (alpha + y.abs())
    inner = total(((y - x).abs() < alpha - margin).to(x.dtype), weight)
    return y, ~((step.abs() <= margin) & (inner > 0))


_NODES = 17  # nodes of the grid on which the quick Welsch search looks at the density ...
_SPACING = 0.75  # ... and their distance over alpha


def _welsch(x: Rows, alpha: Column, weight: Rows | None) -> Quick:
    """Density on a grid of twelve alpha around the bulk, then three Halley steps from its peak.

    The row's mass is shared out linearly between neighbouring nodes, a few percent of error in the density. A row is
    unsure when another peak, or the mass outside the grid, comes within that of the best; when the peak is flat; and
    when the steps did not settle close by.
    """
    eps = torch.finfo(x.dtype).eps
    centre = _start(x, weight)
    peak, unsure = _grid_peak(x, alpha, weight, centre)
    limit = torch.finfo(x.dtype).max ** 0.24
    inverse = 1 / alpha
    begin = centre + alpha * peak
    y, step, h, height = begin, begin, begin, begin
    for _ in range(2 if x.dtype == torch.float32 else 3):
        q = ((y - x) * inverse).clamp(-limit, limit)
        square = q * q
        e = torch.exp(-0.5 * square)
        slope = q * e
        g = total(slope, weight)
        height = total(e, weight)
        h = height - total(slope * q, weight)
        t = total(slope * (square - 3), weight)
        step = alpha * (g / (h - 0.5 * g * t / h))
        y = y - step
    settled = step.abs() <= torch.maximum(0.3 * eps ** (1 / 3) * alpha, 4 * eps * y.abs())
    near = (y - begin).abs() <= alpha
    return y, unsure | ~(settled & near & (h > 0.15 * height))


def _grid_peak(x: Rows, alpha: Column, weight: Rows | None, centre: Column) -> tuple[Column, Bool[Tensor, "r 1"]]:
    """Return the highest point of the density on the grid, in alphas from the centre, and whether it has a rival."""
    inverse = 1 / (_SPACING * alpha)
    half = (_NODES - 1) // 2
    z = (x - centre) * inverse
    # sum of clamp(z, k, k + 1) - k over the row is the mass right of node k, tapering to nothing at node k.
    right = torch.cat([total(z.clamp(k, k + 1) - k, weight) for k in range(-half, half)], -1)
    everything = torch.full_like(centre, x.shape[-1]) if weight is None else weight.sum(-1, keepdim=True)
    mass = torch.cat([everything, right], -1) - torch.cat([right, torch.zeros_like(centre)], -1)
    # The end nodes hold all that lies outside.
    place = _SPACING * torch.arange(_NODES, dtype=x.dtype, device=x.device)
    kernel = torch.exp(-0.5 * (place[:, None] - place).square())
    density = mass @ kernel
    best, at = density[:, 1:-1].max(-1, keepdim=True)
    inner = density[:, 1:-1]
    peaks = (inner >= density[:, :-2]) & (inner >= density[:, 2:]) & (inner >= 0.9 * best)
    rivals = peaks.sum(-1, keepdim=True) > 1
    outside = torch.maximum(density[:, :1], density[:, -1:]) >= 0.9 * best
    before, after = density.gather(-1, at), density.gather(-1, at + 2)
    bend = (2 * best - before - after).clamp_min(1e-6 * best)
    offset = (0.5 * (after - before) / bend).clamp(-0.5, 0.5)
    return _SPACING * (at + 1 - half + offset), rivals | outside


def _search_unknown(x: Rows, alpha: Column, weight: Rows | None, penalty: Penalty) -> Column:
    """Convex: bracketed Newton, guaranteed. Else descents from up to 64 points of the sorted row: a good guess."""
    if penalty.convex:
        return exact_location.bracketed(x, alpha, weight, _start(x, weight), penalty)
    seen = x if weight is None else torch.where(weight > 0, x, _start(x, weight))
    ordered = seen.sort(-1).values
    step = -(-x.shape[-1] // 64)
    return _best_descent(torch.cat([ordered[:, ::step], ordered[:, -1:]], -1), x, alpha, weight, penalty)


def _from_mean_and_median(x: Rows, alpha: Column, weight: Rows | None, penalty: Penalty) -> Column:
    seen = x if weight is None else torch.where(weight > 0, x, torch.nan)
    starts = torch.cat([_mean(x, weight), seen.nanmedian(-1, keepdim=True).values], -1)
    return _best_descent(starts, x, alpha, weight, penalty)


def _best_descent(y: Float[Tensor, "r k"], x: Rows, alpha: Column, weight: Rows | None, penalty: Penalty) -> Column:
    """Return the best end of local descents: reweighted means, Newton steps where they are at most four times longer.

    A reweighted mean cannot raise the objective of a penalty that is concave in z^2, as robust penalties are.
    """
    alpha, points = alpha[:, None], x[:, None]
    mass = None if weight is None else weight[:, None]
    tiny = torch.finfo(x.dtype).tiny
    for _ in range(60):
        z = y[..., None] - points
        slope, curvature, _ = penalty.derivatives(z, alpha)
        pull = torch.where(z.abs() > tiny, slope / z, curvature)
        g, h, full = (total(part, mass)[..., 0] for part in (slope, curvature, pull))
        step = torch.where(h > 0.25 * full, g / h, g / full)
        y = y - torch.where(full > 0, step, 0.0)
    objective = total(penalty.value(y[..., None] - points, alpha), mass)[..., 0]
    best = objective.nan_to_num(nan=torch.inf, posinf=torch.finfo(x.dtype).max).argmin(-1, keepdim=True)
    return y.gather(-1, best)


@torch.library.custom_op("tacit::exact_robust_location", mutates_args=())
def _exact(x: Tensor, alpha: Tensor, weight: Tensor | None, start: Tensor, unsure: Tensor, penalty: str) -> Tensor:
    """Return `start` with the unsure rows replaced by the exact answer.

    One opaque operation to the compiler: it chooses rows by value where that costs nothing (not on an accelerator,
    where every row is searched and the sure ones keep their start), and works through them in chunks.
    """
    rows = None
    if x.device.type == "cpu":
        if not bool(unsure.any()):
            return start.clone()
        if not bool(unsure.all()):
            rows = unsure[:, 0].nonzero()[:, 0]
    y = start.clone()
    size = {"welsch": 1 << 13, "huber": 1 << 16}.get(penalty, _CHUNK) // x.shape[-1] + 1
    for begin in range(0, x.shape[0] if rows is None else len(rows), size):
        these = slice(begin, begin + size) if rows is None else rows[begin : begin + size]
        chosen = (x[these], alpha[these], None if weight is None else weight[these])
        found = _exact_rows(*chosen, start[these], penalty)
        y[these] = torch.where(unsure[these], found, start[these])
    return y


@_exact.register_fake
def _(x: Tensor, alpha: Tensor, weight: Tensor | None, start: Tensor, unsure: Tensor, penalty: str) -> Tensor:
    return torch.empty_like(start)


def _exact_rows(x: Rows, alpha: Column, weight: Rows | None, start: Column, penalty: str) -> Column:
    if penalty == "huber":
        return exact_location.huber(x, alpha, weight)
    if penalty == "welsch":
        return exact_location.welsch(x, alpha, weight)
    if penalty == "truncated_quadratic":
        return exact_location.truncated_quadratic(x, alpha, weight)
    start = torch.where(start.isfinite(), start, _start(x, weight))
    return exact_location.bracketed(x, alpha, weight, start, PENALTIES[penalty])
