"""Which part of a training image is seen: a random share of its area, at a random aspect ratio, flipped or not.

The draws of a batch depend on seed, epoch and step alone; how many processes decode, and where, changes nothing.
"""

from __future__ import annotations

import math

import torch

from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["DRAWS", "boxes", "draws", "flips"]

TRIES = 10
DRAWS = 2 * TRIES + 3  # area and ratio of each try, position in both directions, flip


def draws(n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
    """Return the uniform numbers that decide the crops of n images, of whatever size."""
    return torch.rand(n, DRAWS, generator=generator, dtype=torch.float64)


def flips(drawn: Float[Tensor, "n d"]) -> Bool[Tensor, " n"]:
    """Return which images are mirrored: every other one."""
    return drawn[:, -1] < 0.5


def boxes(
    drawn: Float[Tensor, "n d"],
    height: Int[Tensor, " n"],
    width: Int[Tensor, " n"],
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> Int[Tensor, "n 4"]:
    """Return top, left, height and width of each image's crop.

    Area share uniform in `scale`, the logarithm of width / height uniform in that of `ratio`, and the position
    uniform; of ten tries the first that fits; when none does, the largest central crop within `ratio`.
    """
    area_draw, ratio_draw = drawn[:, :TRIES], drawn[:, TRIES : 2 * TRIES]
    H, W = height.double()[:, None], width.double()[:, None]
    area = H * W * (scale[0] + (scale[1] - scale[0]) * area_draw)
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = torch.exp(low + (high - low) * ratio_draw)
    w, h = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
    fits = (w >= 1) & (h >= 1) & (w <= W) & (h <= H)
    first = fits.to(torch.uint8).argmax(1, keepdim=True)
    found = fits.any(1, keepdim=True)
    w = torch.where(found, w.gather(1, first), torch.minimum(W, (H * ratio[1]).round().clamp_min(1)))
    h = torch.where(found, h.gather(1, first), torch.minimum(H, (W / ratio[0]).round().clamp_min(1)))
    top = torch.where(found, ((H - h + 1) * drawn[:, 2 * TRIES, None]).floor(), ((H - h) / 2).floor())
    left = torch.where(found, ((W - w + 1) * drawn[:, 2 * TRIES + 1, None]).floor(), ((W - w) / 2).floor())
    return torch.cat([top, left, h, w], dim=1).long()
