"""All images decoded once and kept on the device, where the crops are taken too.

What is kept of an image is its central square, at the size validation looks at. Where a crop has to grow, its pixels
are those of an image that was cropped and resized; where it has to shrink, it is not antialiased.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from tacit.experiments.common.errors import DataError
from tacit.experiments.image.crops import boxes, flips
from tacit.experiments.image.decode import resized_square
from tacit.experiments.image.feed import Feed, normalised
from tacit.shapes import Float, Tensor

__all__ = ["ResidentFeed", "crop", "crop_plan"]


class ResidentFeed(Feed):
    """Batches from the device's memory; the arguments are those of `Feed`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        pixels, kept = self._decoded()
        self.pixels = torch.from_numpy(pixels).permute(0, 3, 1, 2).to(self.world.device)
        self.labels = torch.from_numpy(self.images.labels[kept]).to(self.world.device)

    def __len__(self) -> int:
        """How many images could be decoded."""
        return len(self.labels)

    def training(self, epoch: int, first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield augmented images and labels, from step `first` of the epoch on."""
        if first >= self.steps:
            return
        order, device = self.order(epoch), self.world.device
        drawn = torch.stack([self.drawn(epoch, step) for step in range(first, self.steps)])
        plans = (
            crop_plan(drawn.flatten(0, 1), self.view.resize, self.view.least).to(device).unflatten(0, drawn.shape[:2])
        )
        rows = torch.stack([self.rows(order, step) for step in range(first, self.steps)]).to(device)
        for some, plan in zip(rows, plans):
            yield normalised(crop(self.pixels[some], plan, self.view.size)), self.labels[some]

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the central squares of this process's share of the images, in order, and their labels."""
        mine, size = self.world.share(len(self)), self.view.size
        edge = (self.view.resize - size) // 2
        for begin in range(mine.start, mine.stop, self.batch):
            rows = slice(begin, min(begin + self.batch, mine.stop))
            yield normalised(self.pixels[rows, :, edge : edge + size, edge : edge + size]), self.labels[rows]

    def _decoded(self) -> tuple[np.ndarray, np.ndarray]:
        side = self.view.resize
        pixels = np.empty((len(self.images), side, side, 3), dtype=np.uint8)
        good = np.ones(len(self.images), dtype=bool)

        def decode(i: int) -> None:
            try:
                pixels[i] = np.asarray(resized_square(self.images.image(i), side, side))
            except DataError as error:
                self.complain(error)
                good[i] = False

        with ThreadPoolExecutor(max(1, self.workers)) as pool:  # Pillow decodes without the interpreter's lock
            for _ in pool.map(decode, range(len(self.images))):
                pass
        if not good.any():
            raise DataError(f"None of the {len(self.images)} images could be decoded; {min(self.skipped)}")
        return (pixels, np.arange(len(good))) if good.all() else (pixels[good], np.flatnonzero(good))


def crop_plan(drawn: Float[Tensor, "b d"], side: int, least: float = 0.08) -> Float[Tensor, "b 5"]:
    """Return top, left, height and width of the drawn crops of square images, and -1 where they are mirrored, else 1."""
    sides = torch.full((len(drawn),), side)
    to = torch.where(flips(drawn), -1.0, 1.0)
    return torch.cat([boxes(drawn, sides, sides, (least, 1.0)).float(), to[:, None]], dim=1)


def crop(pixels: Tensor, plan: Float[Tensor, "b 5"], size: int) -> Float[Tensor, "b 3 s s"]:
    """Return the planned crops of square images (b, 3, side, side), resampled to `size` pixels."""
    side = pixels.shape[-1]
    top, left, high, wide, to = plan[:, :, None].unbind(1)
    at = (torch.arange(size, device=pixels.device) + 0.5) / size  # pixel centres, as a share of the crop
    # Clamped to the crop: at its edge the outermost pixel counts alone, as where the crop is cut out first.
    x = (left + torch.where(to > 0, at, 1 - at) * wide - 0.5).clamp(left, left + wide - 1)
    y = (top + at * high - 0.5).clamp(top, top + high - 1)
    across, down = (2 * x + 1) / side - 1, (2 * y + 1) / side - 1
    grid = torch.stack(torch.broadcast_tensors(across[:, None, :], down[:, :, None]), dim=-1)
    return torch.nn.functional.grid_sample(pixels.float(), grid, "bilinear", "border", align_corners=False)
