"""Exact minimisers of sum_i w_i phi(u - x_i; alpha), row by row: slower than the quick search, and never wrong.

    Huber                sort, bisect over the 2n breakpoints of the slope, then one linear piece
    any convex penalty   Newton inside a shrinking bracket
    truncated quadratic  every window of the sorted row that some u can see, scored by objective
    Welsch               density of the sorted row on all its cells, the best modes polished on the data

Rows `x (r, n)`, `alpha (r, 1)`, `weight (r, n)` or None, no autograd. Claim key: DDN[robust-pooling].
"""

from __future__ import annotations

import importlib
from types import ModuleType

import torch

from tacit.functions.penalties import Penalty
from tacit.shapes import Float, Int, Tensor

__all__ = ["bracketed", "huber", "total", "truncated_quadratic", "welsch"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]
Events = Float[Tensor, "r 2*n"]

_MODES = 12  # modes of the Welsch density that are polished on the data
_CELLS = 8  # cells per alpha when a long row is grouped
_GROUP_FROM = 256  # rows up to this long are not grouped: their density is exact
_GAP = 3.0  # alphas to which longer gaps of a row are shrunk: over 2, nothing is seen across
_NEAR = 0.01  # alphas from 0 up to which windows lose digits of the points, and all points share one window
_FAR = 8e3  # alphas from 0 up to which windows of the row as it is keep the digits of the points
_GRID = 1.5 * 2**14  # added and taken away, rounds numbers up to 2**13 to multiples of 2**-38


def total(rows: Float[Tensor, "*r n"], weight: Float[Tensor, "*#r n"] | None) -> Float[Tensor, "*r 1"]:
    """Return the (weighted) sum of each row."""
    return (rows if weight is None else rows * weight).sum(-1, keepdim=True)


def bracketed(x: Rows, alpha: Column, weight: Rows | None, start: Column, penalty: Penalty) -> Column:
    """Return the root of a convex penalty's slope by Newton inside a bracket that shrinks every time.

    A Newton step that leaves the bracket, or that is not at most half of the step before, is replaced by bisection;
    a row that has converged stands still, so that its answer depends on no other row.
    """
    seen = x if weight is None else torch.where(weight > 0, x, start)
    limit = torch.finfo(x.dtype).max  # a point at infinity is an outlier like any other
    low, high = (end(seen, -1, keepdim=True).clamp(-limit, limit) for end in (torch.amin, torch.amax))
    y = torch.minimum(torch.maximum(start, low), high)
    previous = high - low
    done = torch.zeros_like(y, dtype=torch.bool)
    eps = torch.finfo(x.dtype).eps
    for _ in range(_iterations(x)):
        slope, curvature, _ = penalty.derivatives(y - x, alpha)
        g, h = total(slope, weight), total(curvature, weight)
        low, high = torch.where(g <= 0, y, low), torch.where(g >= 0, y, high)
        newton = y - g / h
        trusted = (newton > low) & (newton < high) & ((newton - y).abs() <= 0.5 * previous)
        new = torch.where(trusted, newton, 0.5 * low + 0.5 * high)
        new = torch.where(g == 0, y, new)
        step = (new - y).abs()
        new = torch.where(done, y, new)
        done = done | (step <= 2 * eps * new.abs()) | (step <= 2 * eps * alpha) | g.isnan()
        y, previous = torch.where(g.isnan(), g, new), step
        if _finished(done):
            break
    return torch.where(_pointless(seen), torch.nan, y)


def _iterations(x: Rows) -> int:
    """Return how often to iterate: to the end where that can be seen cheaply, a fixed number where it cannot."""
    return 400 if _watched(x) else 48


def _watched(x: Tensor) -> bool:
    """Return whether the values may be looked at: on an accelerator that would stall the queue."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def _finished(done: Tensor) -> bool:
    return _watched(done) and bool(done.all())


def huber(x: Rows, alpha: Column, weight: Rows | None) -> Column:
    """Return the Huber location; of an interval of minimisers, its midpoint.

    The slope is piecewise linear and never falls, with breakpoints at x_i - alpha and x_i + alpha. Bisection over the
    sorted breakpoints finds the first where it is >= 0 and the last where it is <= 0, in log2(2n) evaluations.
    """
    eps = torch.finfo(x.dtype).eps
    seen = x if weight is None else torch.where(weight > 0, x, _some_seen(x, weight))
    limit = torch.finfo(x.dtype).max  # a point at infinity is an outlier like any other
    breaks = torch.cat([seen - alpha, seen + alpha], -1).clamp(-limit, limit).sort(-1).values
    last = breaks.shape[-1] - 1

    def slope(u: Column) -> tuple[Column, Column]:
        z = u - x
        inside = z.abs() <= alpha
        # The saturated points are counted, not summed: equal numbers on both sides then cancel exactly.
        sides = total(((z > alpha).to(x.dtype) - (z < -alpha).to(x.dtype)), weight)
        linear = total(torch.where(inside, z, 0.0), weight)
        # Where alpha is lost in the rounding of u, a residual inside is still no longer than alpha.
        noise = torch.minimum(4 * eps * (alpha + u.abs()), 0.25 * alpha) * total(inside.to(x.dtype), weight)
        if weight is not None:
            noise = noise + 4 * eps * alpha * weight.sum(-1, keepdim=True)
        return alpha * sides + linear, noise

    def bisect(first: bool) -> tuple[Column, Column]:
        low = torch.zeros_like(breaks[:, :1], dtype=torch.long)
        high = torch.full_like(low, last)
        for _ in range(last.bit_length()):
            middle = (low + high + (0 if first else 1)) // 2
            g, noise = slope(breaks.gather(-1, middle))
            if first:  # smallest index whose slope is >= 0
                right = g >= -noise
                low, high = torch.where(right, low, middle + 1), torch.where(right, middle, high)
            else:  # largest index whose slope is <= 0
                right = g <= noise
                low, high = torch.where(right, middle, low), torch.where(right, high, middle - 1)
            low, high = low.clamp(0, last), high.clamp(0, last)
        at = breaks.gather(-1, low)
        return at, slope(at)[0]

    right, g_right = bisect(first=True)
    left, g_left = bisect(first=False)
    # left < right: the root lies inside one linear piece. Otherwise [right, left] is the whole solution set.
    piece = (left - g_left * ((right - left) / (g_right - g_left))).clamp(left, right)
    middle = 0.5 * left + 0.5 * right
    # A piece that bends is 2 alpha long at most. A longer one is level, its ends seen bent only where alpha is lost.
    level = slope(middle)[0]
    end = torch.where(level < 0, right, torch.where(level > 0, left, middle))
    piece = torch.where(right - left > 3 * alpha, end, piece)
    y = torch.where((left < right) & (g_right > g_left), piece, middle)
    return torch.where(_pointless(seen), torch.nan, y)


def _some_seen(x: Rows, weight: Rows) -> Column:
    """Return one point of each row that has weight."""
    return x.gather(-1, weight.argmax(-1, keepdim=True))


def truncated_quadratic(x: Rows, alpha: Column, weight: Rows | None) -> Column:
    """Return the truncated quadratic location: the best of all windows, scored by objective; ties take the left one.

    As u grows, the set S(u) = {|u - x_i| <= alpha} changes where a point enters, at x_i - alpha, or leaves, at
    x_i + alpha: 2n events, and a window between any two. Each window's own quadratic has its minimum at the window's
    mean and bounds the objective there from above, with equality for the optimal one. So the best mean is the global
    minimum.
    """
    seen = x if weight is None else torch.where(weight > 0, x, _some_seen(x, weight))
    if not _watched(x):
        return _careful_windows(seen, alpha, weight)
    span = seen.abs().amax(-1, keepdim=True) / alpha
    searches = (
        (span < _NEAR, _one_window),
        (span < _FAR, _plain_windows),
        (torch.ones_like(span, dtype=torch.bool), _careful_windows),
    )
    y, left = torch.empty_like(seen[:, :1]), searches[-1][0]
    for fits, search in searches:
        these = left & fits
        if bool(these.all()):  # as a rule all rows are of one kind, and none is copied
            return search(seen, alpha, weight)
        rows = these[:, 0].nonzero()[:, 0]
        if len(rows):
            y[rows] = search(seen[rows], alpha[rows], None if weight is None else weight[rows])
        left = left & ~fits
    return y


def _one_window(x: Rows, alpha: Column, weight: Rows | None) -> Column:
    """Return the location of a row that a single window holds: its mean."""
    return _inlier_mean(x, torch.zeros_like(alpha), alpha, weight)


def _plain_windows(x: Rows, alpha: Column, weight: Rows | None) -> Column:
    """Return the best window's mean from the row as it is."""
    wide = alpha.double()
    y = (wide * _best_window(x.double() / wide, weight)).to(x.dtype)
    return _inlier_mean(x, y, alpha, weight) if _mean_rounds(x) else y


def _mean_rounds(x: Rows) -> bool:
    """Return whether the mean of a window may round worse than the row's type."""
    return x.shape[-1] ** 2 * torch.finfo(torch.float64).eps >= 0.1 * torch.finfo(x.dtype).eps


def _careful_windows(x: Rows, alpha: Column, weight: Rows | None) -> Column:
    """Do the same from the gaps of the sorted row, which are exact however far from 0, or from another, points are."""
    s, order = x.sort(-1)
    finite = s.isfinite()
    mass = finite.to(x.dtype) if weight is None else torch.where(finite, weight.gather(-1, order), 0.0)
    t = torch.zeros_like(s, dtype=torch.float64)
    gaps = torch.diff(s.double(), dim=-1) / alpha.double()
    torch.cumsum(torch.nan_to_num(gaps, nan=_GAP).clamp_max_(_GAP), -1, out=t[:, 1:])
    center = _best_window(t, mass)
    at = (t - center).abs().min(-1, keepdim=True).indices  # a point of that window: no shrunk gap lies between
    y = s.gather(-1, at).double() + alpha.double() * (center - t.gather(-1, at))
    y = _inlier_mean(s, y.to(x.dtype), alpha, mass)
    return torch.where(_pointless(x), torch.nan, y)


def _pointless(x: Rows) -> Tensor:
    """Return which rows have a NaN or nothing finite: those have no location."""
    return x.isnan().any(-1, keepdim=True) | ~x.isfinite().any(-1, keepdim=True)


def _best_window(x: Rows, weight: Rows | None) -> Column:
    """Return the location of points in alphas, from one sweep over the events.

        m = sum_S w_i        A = sum_S w_i (u - x_i)        G = sum_S w_i (1 - (u - x_i)^2)

    are kept relative to the sweeping u: over a gap d, A rises by m d and G falls by d (2 A - m d), with A from after
    the gap; at an event, where the point is at u + 1 or u - 1, A falls by its weight and G not at all. The window's
    mean gains G + A^2 / m. Nothing is larger than a window's mass, however long and wide the row: sums relative to a
    fixed place would lose the window in the rounding of all before it. Points are rounded to a grid on which events,
    gaps and, without weights, A are exact: nothing is left of a window that is past, and of equal ones the left wins.
    """
    event, sign, w = _events(x, weight)
    gap = torch.empty_like(event)
    torch.sub(event[:, 1:], event[:, :-1], out=gap[:, :-1])
    gap[:, -1] = 0
    least = 0.5
    if w is not None:  # between clusters nothing is left but rounding, which must neither grow nor win
        gap, sign, least = gap.clamp_max_(_GAP), sign.mul_(w), 1e-12
    mass = sign.cumsum(-1)
    swept = mass * gap
    moment = (swept - (1 if w is None else w)).cumsum(-1)
    gain = swept.sub_(moment, alpha=2).mul_(gap).cumsum(-1)
    # A product is faster than square().
    best = _argmax(gain.addcdiv_(moment * moment, mass.clamp_min_(least)))
    end = event.gather(-1, best) + gap.gather(-1, best)
    return end - moment.gather(-1, best) / mass.gather(-1, best)


def _events(x: Rows, weight: Rows | None) -> tuple[Events, Events, Events | None]:
    """Return where points enter and leave, in alphas and ascending, with +1 and -1 and the point's share of the weight.

    Without weights the sign travels in the last bit of the number, which the grid leaves free, so that values can be
    sorted alone. Of events at one place any order will do: a point alpha away from a window's mean only makes it worse.
    """
    n = x.shape[-1]
    both, rounded = x.new_empty(x.shape[0], 2 * n), x + _GRID
    torch.sub(rounded, _GRID + 1, out=both[:, :n])
    torch.sub(rounded, _GRID - 1, out=both[:, n:])
    if weight is not None:
        event, order = both.sort(-1)
        share = weight.double() / weight.amax(-1, keepdim=True)  # the squares of very large or small weights are lost
        return event, torch.where(order < n, 1.0, -1.0).double(), share.gather(-1, order % n)
    both.view(torch.int64)[:, n:] |= 1
    bits = _sort(both).view(torch.int64)
    one = 0x3FF0000000000000  # the bits of 1.0; the sign is the first
    sign = (bits << 63).bitwise_or_(one).view(torch.float64)
    return bits.bitwise_and_(-2).view(torch.float64), sign, None


def _argmax(x: Rows) -> Int[Tensor, "r 1"]:
    """Return where each row is greatest, some five times faster in numpy than in torch."""
    numpy = _numpy(x)
    if numpy is None:
        return x.max(-1, keepdim=True).indices  # faster than argmax
    return torch.from_numpy(numpy.argmax(x.numpy(), axis=-1, keepdims=True))


def _sort(x: Rows) -> Rows:
    """Return the rows sorted, some twenty times faster in numpy than in torch."""
    numpy = _numpy(x)
    return x.sort(-1).values if numpy is None else torch.from_numpy(numpy.sort(x.numpy(), axis=-1))


def _numpy(x: Tensor) -> ModuleType | None:
    """Return numpy where it is installed and can read x, which is on the CPU."""
    if x.device.type != "cpu":
        return None
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


def _inlier_mean(x: Rows, y: Column, alpha: Column, weight: Rows | None) -> Column:
    """Return the mean of the points within alpha of y, formed around y: one exact step of the local problem."""
    z = x - y
    inside = z.abs() <= alpha
    mass = total(inside.to(x.dtype), weight)
    return torch.where(mass > 0, y + total(torch.where(inside, z, 0.0), weight) / mass, y)


def welsch(x: Rows, alpha: Column, weight: Rows | None) -> Column:
    """Return the Welsch location: the highest mode of sum_i w_i exp(-(u - x_i)^2 / (2 alpha^2)).

    A row of up to 256 points is searched from every point; a longer one from the cells (alpha / 8 wide) that hold
    points, each standing for its points by mass, mean and variance, an error under 1e-3 of its share. The best dozen
    are polished on the data by steps that cannot go down, and the best value wins: a miss needs a dozen modes within
    1e-3 of each other.
    """
    seen = x if weight is None else torch.where(weight > 0, x, _some_seen(x, weight))
    shift = seen.nanmedian(-1, keepdim=True).values
    shift = torch.where(shift.isfinite(), shift, 0.0)
    points = ((x - shift).double() / alpha.double()).clamp(-1e150, 1e150)
    mass = torch.ones_like(points) if weight is None else weight.double()
    mean, cell_mass, variance = (points, mass, torch.zeros_like(points))
    if x.shape[-1] > _GROUP_FROM:
        mean, cell_mass, variance = _cells(points, mass)
    starts = _distinct_best(mean, _density(mean, cell_mass, variance))
    y = _ascend(starts, points, mass)
    value = (mass[:, None] * torch.exp(-0.5 * (y[..., None] - points[:, None]).square())).sum(-1)
    best = y.gather(-1, value.nan_to_num(nan=-1.0).argmax(-1, keepdim=True))
    y = (shift + alpha * best.to(x.dtype)).to(x.dtype)
    return torch.where(_pointless(seen), torch.nan, y)


def _cells(points: Rows, mass: Rows) -> tuple[Rows, Rows, Rows]:
    """Return mean, mass and variance of the occupied cells in ascending order; unused places have no mass."""
    s, order = points.sort(-1)
    w = mass.gather(-1, order)
    cell = (s * _CELLS).floor()
    place = (torch.diff(cell, dim=-1, prepend=cell[:, :1]) != 0).cumsum(-1)
    anchor = torch.full_like(s, torch.inf).scatter_reduce(-1, place, s, "amin")  # moments around it do not cancel
    offset = (s - anchor.gather(-1, place)).nan_to_num(0.0)
    zero = torch.zeros_like(s)
    cell_mass, first, second = (zero.scatter_add(-1, place, w * part) for part in (1 + zero, offset, offset.square()))
    share = torch.where(cell_mass > 0, cell_mass, 1.0)
    first = first / share
    return torch.where(anchor.isfinite(), anchor + first, 1e200), cell_mass, second / share - first.square()


def _density(mean: Rows, mass: Rows, variance: Rows) -> Rows:
    """Return, at every cell, the height that one Newton step from there promises (the height itself where convex)."""
    n = mean.shape[-1]
    reach = n - 1 if n <= _GROUP_FROM else min(n - 1, 6 * _CELLS + 1)
    height, slope, curvature = (torch.zeros_like(mean) for _ in range(3))
    pad = [torch.nn.functional.pad(part, (reach, reach), value=value)
           for part, value in ((mean, 1e200), (mass, 0.0), (variance, 0.0))]  # fmt: skip
    for k in range(2 * reach + 1):
        there, weight, spread = (part[:, k : k + n] for part in pad)
        z = (mean - there).clamp(-1e3, 1e3)
        square = z.square()
        e = weight * torch.exp(-0.5 * square) * (1 + 0.5 * spread * (square - 1))
        height, slope, curvature = height + e, slope - e * z, curvature + e * (square - 1)
    step = (-slope / curvature).clamp(-0.5, 0.5)
    gain = torch.where(curvature < 0, 0.5 * slope * step, 0.0)
    return torch.where(mass > 0, height + gain.nan_to_num(0.0), -1.0)


def _distinct_best(position: Rows, height: Rows) -> Float[Tensor, "r k"]:
    """Return the positions of the highest cells, each at least a quarter alpha from those chosen before."""
    chosen: list[Tensor] = []
    for _ in range(min(_MODES, position.shape[-1])):
        best = height.argmax(-1, keepdim=True)
        at = position.gather(-1, best)
        chosen.append(torch.where(height.gather(-1, best) > 0, at, chosen[0] if chosen else at))
        height = torch.where((position - at).abs() < 0.25, -1.0, height)
    return torch.cat(chosen, -1)


def _ascend(y: Float[Tensor, "r k"], points: Rows, mass: Rows) -> Float[Tensor, "r k"]:
    """Return each start carried uphill: Newton where the curvature hardly changes on the way, else mean shift.

    Below an inflection Newton would go to the valley; there the same length is gone uphill, a quarter alpha at most.
    """
    for _ in range(40):
        z = (y[..., None] - points[:, None]).clamp(-1e3, 1e3)
        square = z.square()
        e = mass[:, None] * torch.exp(-0.5 * square)
        height, slope = e.sum(-1), (e * z).sum(-1)
        curvature = height - (e * square).sum(-1)
        third = (e * z * (square - 3)).sum(-1)
        newton = slope / curvature.abs()
        shift = slope / height
        steep = torch.where(newton.abs() < 0.25, newton, shift.sign() * shift.abs().clamp_min(0.25))
        calm = (newton * third).abs() <= curvature
        y = y - torch.where(calm, newton, torch.where(curvature < 0, steep, shift)).nan_to_num(0.0)
    return y
