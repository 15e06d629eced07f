"""Where the robust location is found: a quick search that knows when it is unsure, then the exact one.

The quick search is a fixed number of passes over a row without sorting, in plain torch, so that `torch.compile` fuses
it into one kernel that reads a row once. It returns the location and the rows for which that is not proven (convex) or
not clear (Welsch); those go to `exact_location`. Rows are independent throughout. Claim key: DDN[robust-pooling].
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable
from types import ModuleType

import torch

from tacit.functions.penalties import PENALTIES, Penalty
from tacit.nn.functional import exact_location
from tacit.nn.functional.exact_location import total
from tacit.shapes import Bool, Float, Tensor

__all__ = ["locate"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]
Quick = tuple[Column, Bool[Tensor, "r 1"]]

_CHUNK = 1 << 17  # numbers a thread handles at once when eager: they stay in the cache, and scratch memory stays small
_LONGEST = 16384  # numbers that an accelerator's kernel holds in registers
_LEAST = 64  # a shorter row counts as this many numbers


def locate(x: Rows, alpha: Column, weight: Rows | None, penalty: Penalty, search: str) -> Column:
    """Return the location of each row, (r, 1).

    `search="global"` is the global minimiser; `"paper"` starts at the mean and the median, descends from each and
    keeps the better, as the paper did for its two penalties that are not convex. No weight in a row: 0, the minimiser
    of smallest norm when everything minimises. Negative weights, or an alpha that is not positive and finite: NaN, in
    that row.
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
        if _fits_a_kernel(x, penalty.name):  # one kernel does it all
            start, unsure = _start(x, weight), torch.ones_like(x[:, :1], dtype=torch.bool)
        else:
            start, unsure = _chunked(_QUICK[penalty.name], x, alpha, weight)
        y = _exact(x, alpha, weight, start, unsure, penalty.name)
    if weight is not None:
        heavy = weight.sum(-1, keepdim=True)
        y = torch.where(heavy == 0, 0.0, y)
        y = torch.where((weight < 0).any(-1, keepdim=True), torch.nan, y)
    return torch.where((alpha > 0) & alpha.isfinite(), y, torch.nan)


def _chunk(x: Tensor) -> int:
    threads = min(8, torch.get_num_threads())
    return _CHUNK * (threads if x.device.type == "cpu" else 64)  # an accelerator wants few, large operations


@functools.cache
def _keep_scratch_memory() -> None:
    """Have the allocator keep the memory of a chunk for the next one.

    The C library of Linux gives a freed block above some size back to the system, which then hands out empty pages
    anew, at the price of several passes over them. That size rises to the largest block seen freed, up to 32 MiB: one
    is enough, and as nobody writes to it, it costs nothing.
    """
    torch.empty(31 << 20, dtype=torch.uint8, device="cpu")


def _chunked(
    search: Callable[[Rows, Column, Rows | None], tuple[Tensor, ...]], x: Rows, alpha: Column, weight: Rows | None
) -> tuple[Tensor, ...]:
    """Return search(x, alpha, weight), some rows at a time."""
    if torch.compiler.is_compiling():
        return search(x, alpha, weight)
    size = max(1, _chunk(x) // max(x.shape[-1], _LEAST))
    if x.shape[0] <= size:
        return search(x, alpha, weight)
    _keep_scratch_memory()
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


_REACH = 5  # the quick Welsch search shares the row out among nodes one alpha apart, this many on either side
_NEAR = 1.25  # alphas within which a mode as sharp as _SHARP has no other beside it
_SHARP = 0.35  # curvature over height; a single point has 1, a flat top 0


def _welsch(x: Rows, alpha: Column, weight: Rows | None) -> Quick:
    """Density on a grid of ten alpha around the bulk, Halley steps from its peak, then a bound on every rival.

    Sure where the steps settled on a sharp mode and the density anywhere further than 5/4 alpha from it is bounded below
    its height.
    """
    eps = torch.finfo(x.dtype).eps
    centre = _start(x, weight)
    mass = _grid_mass(x, alpha, weight, centre)
    begin = centre + alpha * _grid_peak(mass)[:, None]
    limit = torch.finfo(x.dtype).max ** 0.24
    inverse = 1 / alpha
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
    alone = _rival_bound(mass, ((y - centre) * inverse)[:, 0])[:, None] < height
    return y, ~(settled & alone & (h > _SHARP * height))


def _grid_mass(x: Rows, alpha: Column, weight: Rows | None, centre: Column) -> Float[Tensor, "k r"]:
    """Return each row's mass, a point's shared linearly between the nodes beside it; the ends hold all outside."""
    z = ((x - centre) / alpha).clamp(-_REACH, _REACH)
    # Second differences of sum relu(z - k), a function of k with a kink at every point, are sums of hats.
    ramps = torch.stack([total(torch.relu(z - k), weight)[:, 0] for k in range(-_REACH, _REACH)])
    everything = torch.full_like(ramps[:1], x.shape[-1]) if weight is None else weight.sum(-1)[None]
    zero = torch.zeros_like(ramps[:1])
    right = ramps - torch.cat([ramps[1:], zero])  # of a node, tapering to nothing at it
    return torch.cat([everything, right]) - torch.cat([right, zero])


def _places(mass: Float[Tensor, "k r"]) -> Float[Tensor, "k 1"]:
    return torch.arange(-_REACH, _REACH + 1, dtype=mass.dtype, device=mass.device)[:, None]


def _grid_peak(mass: Float[Tensor, "k r"]) -> Float[Tensor, "r"]:
    """Return the highest point of the density, in alphas from the centre of the grid."""
    place = _places(mass)
    density = torch.exp(-0.5 * (place - place.mT).square()) @ mass
    best, at = density[1:-1].max(0, keepdim=True)
    before, after = density.gather(0, at), density.gather(0, at + 2)
    bend = (2 * best - before - after).clamp_min(1e-6 * best)
    return (at + 1 - _REACH + (0.5 * (after - before) / bend).clamp(-0.5, 0.5))[0]


def _rival_bound(mass: Float[Tensor, "k r"], peak: Float[Tensor, "r"]) -> Float[Tensor, "r"]:
    """Return a bound on the density at every u further than _NEAR from the peak, all in alphas from the centre.

    Over an interval of u, a point at distance t from it adds at most exp(-t^2 / 2). Shared out linearly, it is counted
    with a chord of that curve, which falls short by at most 1/8 where the curve is concave, hence the 1/8 at nodes that
    take part in such a chord. The intervals reach both ends of the grid from a peak up to 2 away from its centre; of
    another, nothing is known.
    """
    place = _places(mass)
    begin = _NEAR + torch.arange(_REACH + 1, dtype=mass.dtype, device=mass.device)[:, None, None]
    bound = torch.zeros_like(peak)
    for side in (1, -1):
        low = (begin + side * peak).clamp_max(_REACH)  # (interval, 1, row)
        distance = torch.maximum(low - side * place, side * place - low - 1).clamp_min(0.0)
        share = torch.exp(-0.5 * distance.square()) + 0.125 * (distance < 2)
        bound = torch.maximum(bound, (share * mass).sum(1).amax(0))
    bound = bound + 1e-3 * mass.sum(0)  # rounding of the shares
    return torch.where(peak.abs() <= 2, bound, torch.inf)


_QUICK = {"pseudo_huber": _pseudo_huber, "huber": _huber, "welsch": _welsch}


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
    value = penalty.value(y[..., None] - points, alpha)
    # Compared point by point: beside the value of one far point, all others would be lost in rounding.
    objective = total(value - value[:, -1:], mass)[..., 0]
    best = objective.nan_to_num(nan=torch.inf, posinf=torch.finfo(x.dtype).max).argmin(-1, keepdim=True)
    return y.gather(-1, best)


@torch.library.custom_op("tacit::exact_robust_location", mutates_args=())
def _exact(x: Tensor, alpha: Tensor, weight: Tensor | None, start: Tensor, unsure: Tensor, penalty: str) -> Tensor:
    """Return `start` with the unsure rows replaced by the exact answer.

    One opaque operation to the compiler: it chooses rows by value, and works through them in chunks. On an accelerator
    it is one kernel that looks at nothing; only where that is missing are the flags looked at, once.
    """
    if _fits_a_kernel(x, penalty):
        kernel = _kernel()
        if kernel is not None:
            found: Tensor = kernel.locate_rows(x, alpha, weight, start, penalty)
            return found
        if penalty in _QUICK:
            start, unsure = _chunked(_QUICK[penalty], x, alpha, weight)
    rows = None
    if penalty != "truncated_quadratic":
        if not bool(unsure.any()):
            return start.clone()
        if not bool(unsure.all()):
            rows = unsure[:, 0].nonzero()[:, 0]
    _keep_scratch_memory()
    y = start.clone()
    shift = {"welsch": 4, "huber": 1, "truncated_quadratic": 2 if x.device.type == "cpu" else 0}.get(penalty, 0)
    size = (_chunk(x) >> shift) // x.shape[-1] + 1
    for begin in range(0, x.shape[0] if rows is None else len(rows), size):
        these = slice(begin, begin + size) if rows is None else rows[begin : begin + size]
        # Contiguous: a sum's last bit depends on the layout, which must not tell whether a neighbour was sure.
        chosen = x[these].contiguous(), None if weight is None else weight[these].contiguous()
        found = _exact_rows(chosen[0], alpha[these], chosen[1], start[these], penalty)
        y[these] = torch.where(unsure[these], found, start[these])
    return y


def _fits_a_kernel(x: Rows, penalty: str) -> bool:
    """Return whether an accelerator's kernel holds a row; of windows there are two a point, each with two numbers."""
    return x.is_cuda and x.shape[-1] <= (_LONGEST // 4 if penalty == "truncated_quadratic" else _LONGEST)


@functools.cache
def _kernel() -> ModuleType | None:
    """Return the accelerator's search where Triton is installed; importing Triton takes a while, hence not before."""
    try:
        return importlib.import_module("tacit.nn.functional.location_kernel")
    except ImportError:
        return None


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
