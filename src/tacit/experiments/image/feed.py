"""Batches for training and validation, whichever way images are kept.

Order and crops depend on (seed, epoch, step) alone: a training continues in the middle of an epoch, and however many
processes share a batch, together they see the same images.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from tacit.errors import OptionError
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import DataError
from tacit.experiments.common.seeds import generator
from tacit.experiments.image.crops import draws
from tacit.experiments.image.data import ImageSet
from tacit.shapes import Float, Int, Tensor

__all__ = ["Feed", "View", "normalised"]

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels


@dataclass(frozen=True)
class View:
    """How an image is looked at.

    Args:
        size: pixels of the square that the network sees.
        resize: pixels the shorter side is brought to before the central square is taken, in validation.
        least: smallest share of the area that a training crop covers.
    """

    size: int
    resize: int
    least: float = 0.08

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if not 1 <= self.size <= self.resize:
            raise OptionError(f"size expects 1 to {self.resize} pixels, which resize is; received {self.size}.")
        if not 0 < self.least <= 1:
            raise OptionError(f"least_area expects a share above 0, at most 1; received {self.least}.")


def normalised(images: Tensor) -> Float[Tensor, "b 3 h w"]:
    """Return images with values from 0 to 255 as what the network is given, channels last in memory."""
    mean = torch.tensor(MEAN, device=images.device)[:, None, None] * 255
    deviation = torch.tensor(DEVIATION, device=images.device)[:, None, None] * 255
    return ((images.float() - mean) / deviation).contiguous(memory_format=torch.channels_last)


class Feed(abc.ABC):
    """Batches of one image set, for one of several processes.

    Args:
        images: the set.
        world: the processes.
        view: sizes and crops.
        batch: images a step, over all processes together.
        seed: of order and crops.
        skip: leave broken images out, and keep the complaints in `skipped`, rather than raise DataError.
        workers: threads or processes that decode.
    """

    def __init__(
        self,
        images: ImageSet,
        world: World,
        view: View,
        *,
        batch: int = 256,
        seed: int = 0,
        skip: bool = False,
        workers: int = 4,
    ) -> None:
        self.images, self.world, self.view = images, world, view
        self.batch, self.seed, self.skip, self.workers = batch, seed, skip, workers
        self.skipped: set[str] = set()

    def __len__(self) -> int:
        """How many images there are to feed."""
        return len(self.images)

    @property
    def steps(self) -> int:
        """Whole batches in an epoch; the few images that are left over differ from epoch to epoch."""
        if not 2 <= self.batch <= len(self):
            raise OptionError(
                f"batch expects 2 or more, and at most as many images as there are, {len(self)}; received {self.batch}."
            )
        return len(self) // self.world.shared_equally(self.batch)

    def order(self, epoch: int) -> Int[Tensor, " n"]:
        """Return the order in which an epoch takes the images."""
        return torch.randperm(len(self), generator=generator(self.seed, "order", epoch))

    def rows(self, order: Int[Tensor, " n"], step: int) -> Int[Tensor, " b"]:
        """Return which images this process takes in a step."""
        return order[step * self.batch : (step + 1) * self.batch][self.world.share(self.batch)]

    def drawn(self, epoch: int, step: int) -> Float[Tensor, "b d"]:
        """Return the draws that decide the crops of this process's images in a step."""
        return draws(self.batch, generator(self.seed, "crop", epoch, step))[self.world.share(self.batch)]

    def complain(self, error: DataError) -> None:
        """Raise, or note the complaint."""
        if not self.skip:
            raise error
        self.skipped.add(str(error))

    @abc.abstractmethod
    def training(self, epoch: int, first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield augmented images (b, 3, size, size) and labels (b,), from step `first` of the epoch on."""

    @abc.abstractmethod
    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the central squares of this process's share of the images, in order, and their labels."""
