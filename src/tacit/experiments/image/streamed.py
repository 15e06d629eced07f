"""Images decoded by worker processes as they are needed, for sets that no memory holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from tacit.experiments.common.errors import DataError
from tacit.experiments.image.crops import boxes, flips
from tacit.experiments.image.data import ImageSet
from tacit.experiments.image.decode import resized_square
from tacit.experiments.image.feed import Feed, View, normalised
from tacit.shapes import Float, Tensor

__all__ = ["StreamedFeed", "crop_image"]

Wanted = tuple[int, Tensor | None]  # which image, and the draws of its crop; None: the central square


class StreamedFeed(Feed):
    """Batches decoded on the way; the arguments are those of `Feed`."""

    def training(self, epoch: int, first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield augmented images and labels, from step `first` of the epoch on."""
        if first < self.steps:
            yield from self._loaded(_Epoch(self, epoch, first))

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the central squares of this process's share of the images, in order, and their labels."""
        mine = range(len(self))[self.world.share(len(self))]
        parts = [mine[k : k + self.batch] for k in range(0, len(mine), self.batch)]
        yield from self._loaded([[(i, None) for i in part] for part in parts])

    def _loaded(self, wanted: Sequence[list[Wanted]] | _Epoch) -> Iterator[tuple[Tensor, Tensor]]:
        device = self.world.device
        loader = DataLoader(
            _Views(self.images, self.view),
            batch_sampler=wanted,
            num_workers=self.workers,
            collate_fn=_collated,
            pin_memory=device.type == "cuda",
        )
        for images, labels, complaints in loader:
            for complaint in complaints:
                self.complain(DataError(complaint))
            if not len(labels):
                raise DataError(f"Not one image of a batch could be decoded; the last: {complaints[-1]}")
            yield normalised(images.to(device, non_blocking=True)), labels.to(device, non_blocking=True)


class _Epoch:
    """The steps of an epoch from `first` on: for each, which images are wanted, and how they are cropped."""

    def __init__(self, feed: Feed, epoch: int, first: int) -> None:
        self.feed, self.epoch, self.first = feed, epoch, first

    def __len__(self) -> int:
        return self.feed.steps - self.first

    def __iter__(self) -> Iterator[list[Wanted]]:
        order = self.feed.order(self.epoch)
        for step in range(self.first, self.feed.steps):
            yield list(zip(self.feed.rows(order, step).tolist(), self.feed.drawn(self.epoch, step)))


class _Views(Dataset[tuple[np.ndarray, int] | str]):
    """Images as they are looked at: pixels (size, size, 3) and label, or a complaint."""

    def __init__(self, images: ImageSet, view: View) -> None:
        self.images, self.view = images, view

    def __getitem__(self, wanted: Wanted) -> tuple[np.ndarray, int] | str:
        i, drawn = wanted
        try:
            image = self.images.image(i)
        except DataError as error:
            return str(error)
        if drawn is None:
            shown = resized_square(image, self.view.resize, self.view.size)
        else:
            shown = crop_image(image, drawn, self.view.size, self.view.least)
        return np.asarray(shown), int(self.images.labels[i])


def crop_image(image: Image.Image, drawn: Float[Tensor, " d"], size: int, least: float = 0.08) -> Image.Image:
    """Return the drawn crop of an image, resampled to `size` pixels and perhaps mirrored."""
    width, height = (torch.tensor([side]) for side in image.size)
    top, left, high, wide = boxes(drawn[None], height, width, (least, 1.0))[0].tolist()
    shown = image.crop((left, top, left + wide, top + high)).resize((size, size), Image.Resampling.BILINEAR)
    return shown.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flips(drawn[None]).item() else shown


def _collated(items: list[tuple[np.ndarray, int] | str]) -> tuple[Tensor, Tensor, list[str]]:
    complaints = [item for item in items if isinstance(item, str)]
    good = [item for item in items if not isinstance(item, str)]
    if not good:
        return torch.empty(0), torch.empty(0, dtype=torch.int64), complaints
    images = torch.from_numpy(np.stack([pixels for pixels, _ in good])).permute(0, 3, 1, 2)
    return images, torch.tensor([label for _, label in good]), complaints
