"""The threshold theta with sum_i max(a_i - theta, 0) = radius, which L1 and simplex projections share.

The function of theta is convex, piecewise linear and falling, so Newton from the left climbs to the root and is exact
once the set {a_i > theta} repeats: a few passes without a sort. Rows where it has not yet repeated are sorted.
Everything is measured from the row's largest number, which is always above theta: rows near 1e7 in float32 keep the
digits that matter.
"""

from __future__ import annotations

import torch

from tacit.shapes import Bool, Float, Tensor

__all__ = ["level", "support"]

_PASSES = 8


def level(a: Float[Tensor, "r n"], radius: Float[Tensor, "r 1"]) -> tuple[Float[Tensor, "r n"], Float[Tensor, "r 1"]]:
    """Return `a` less its largest number, and the threshold on that scale, which is below 0. No autograd."""
    below = a - a.amax(-1, keepdim=True)
    theta = torch.maximum(-radius, (below.sum(-1, keepdim=True) - radius) / a.shape[-1])
    count = theta
    settled = theta
    for _ in range(_PASSES):
        above = (below - theta).relu_()
        excess = above.sum(-1, keepdim=True) - radius
        settled, count = count, above.sign_().sum(-1, keepdim=True)
        theta = theta + excess / count
    unsure = (settled != count) & theta.isfinite()
    return below, _sorted_threshold(below, radius, theta, unsure)


def support(a: Float[Tensor, "r n"], radius: Float[Tensor, "r 1"]) -> Bool[Tensor, "r n"]:
    """Return which a_i lie above the threshold: the numbers that stay positive. No autograd; NaN rows give none."""
    below, theta = level(a, radius)
    # In exact arithmetic the largest is always in; a radius lost in rounding must not empty the set.
    return (below > theta) | ((below == 0) & theta.isfinite())


@torch.library.custom_op("tacit::sorted_threshold", mutates_args=())
def _sorted_threshold(below: Tensor, radius: Tensor, theta: Tensor, unsure: Tensor) -> Tensor:
    """Return `theta` with the unsure rows solved by a sort and prefix sums.

    One opaque operation to the compiler: it looks at values where that costs nothing (not on an accelerator).
    """
    rows: Tensor | slice = slice(None)
    if below.device.type == "cpu":
        if not bool(unsure.any()):
            return theta.clone()
        rows = unsure[:, 0].nonzero()[:, 0]
    descending = below[rows].double().sort(-1, descending=True).values
    candidates = descending.cumsum(-1) - radius[rows].double()
    candidates = candidates / torch.arange(1, below.shape[-1] + 1, device=below.device)
    count = (descending > candidates).sum(-1, keepdim=True).clamp_min(1)
    found = candidates.gather(-1, count - 1).to(theta.dtype)
    out = theta.clone()
    out[rows] = torch.where(unsure[rows], found, theta[rows])
    return out


@_sorted_threshold.register_fake
def _(below: Tensor, radius: Tensor, theta: Tensor, unsure: Tensor) -> Tensor:
    return torch.empty_like(theta)


@_sorted_threshold.register_vmap
def _(info, in_dims, *parts):  # type: ignore[no-untyped-def]
    flat = []
    for part, at in zip(parts, in_dims, strict=True):
        wide = part.expand(info.batch_size, *part.shape) if at is None else part.movedim(at, 0)
        flat.append(wide.reshape(-1, wide.shape[-1]))
    return _sorted_threshold(*flat).reshape(info.batch_size, -1, 1), 0
