"""Batches, drawn where the model is: the data lie on the device, and nothing is read back.

A batch is points `(b, n, 3)`, labels `(b,)`, and a mask `(b, n)` where clouds differ in size. What is random comes from
the seed and the place (epoch and step), for the whole batch; each of several processes then takes its share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from tacit.errors import OptionError
from tacit.experiments.common.distributed import World
from tacit.experiments.common.seeds import generator
from tacit.experiments.pointcloud.config import Config
from tacit.experiments.pointcloud.data.clouds import Clouds
from tacit.experiments.pointcloud.outliers import with_outliers
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Batch", "draw", "steps_of", "training_batches", "trial_batches"]

TEST_BATCH = 32  # fixed, so that a test's outliers do not depend on how the model was trained


@dataclass(frozen=True)
class Batch:
    """Clouds with their labels."""

    points: Float[Tensor, "b n 3"]
    labels: Int[Tensor, " b"]
    mask: Bool[Tensor, "b n"] | None
    outliers: Bool[Tensor, "b n"] | None = None

    def __getitem__(self, rows: slice) -> Batch:
        """Return some of the clouds."""
        mask = None if self.mask is None else self.mask[rows]
        outliers = None if self.outliers is None else self.outliers[rows]
        return Batch(self.points[rows], self.labels[rows], mask, outliers)


def draw(clouds: Clouds, rows: Tensor, points: int, random: torch.Generator) -> Batch:
    """Return clouds with `points` points each, drawn without replacement; all of a cloud that has fewer."""
    stored, labels = clouds.points[rows], clouds.labels[rows]
    room = stored.shape[1]
    counts = None if clouds.counts is None else clouds.counts[rows, None]
    if counts is None and room <= points:
        return Batch(stored.float(), labels, None)
    keys = torch.rand(len(rows), room, generator=random, device=stored.device)
    if counts is not None:
        keys = keys + 2.0 * (torch.arange(room, device=stored.device) >= counts)
    order = keys.argsort(1)[:, :points]
    chosen = stored.gather(1, order[..., None].expand(-1, -1, 3)).float()
    mask = None if counts is None else torch.arange(order.shape[1], device=stored.device) < counts
    return Batch(chosen, labels, mask)


def training_batches(clouds: Clouds, config: Config, world: World, epoch: int, first: int = 0) -> Iterator[Batch]:
    """Yield this process's shares of an epoch's batches, from step `first` on; a last incomplete batch is left out."""
    device = clouds.points.device
    order = torch.randperm(
        len(clouds), generator=generator(config.seed, "order", epoch, device=device), device=device
    ).split(config.batch)
    for step in range(first, steps_of(clouds, config, world)):
        random = generator(config.seed, "train", epoch, step, device=device)
        batch = draw(clouds, order[step], config.points, random)
        points = augmented(batch.points, config, random)
        if config.outliers:
            points, _ = with_outliers(points, config.outliers, random, batch.mask)
        yield Batch(points, batch.labels, batch.mask)[world.share(config.batch)]


def steps_of(clouds: Clouds, config: Config, world: World) -> int:
    """Return the number of whole batches in an epoch."""
    world.shared_equally(config.batch)
    if len(clouds) < config.batch:
        raise OptionError(f"A batch of {config.batch} is more than the {len(clouds)} training clouds there are.")
    return len(clouds) // config.batch


def augmented(points: Float[Tensor, "b n 3"], config: Config, random: torch.Generator) -> Float[Tensor, "b n 3"]:
    """Return the clouds turned about the second axis and with noise, where asked."""
    if config.rotate:
        angle = 2 * torch.pi * torch.rand(len(points), 1, generator=random, device=points.device)
        cos, sin, (x, y, z) = angle.cos(), angle.sin(), points.unbind(-1)
        points = torch.stack((cos * x + sin * z, y, cos * z - sin * x), -1)
    if config.jitter:
        noise = torch.randn(points.shape, generator=random, device=points.device)
        points = points + (config.jitter * noise).clamp(-5 * config.jitter, 5 * config.jitter)
    return points


def trial_batches(clouds: Clouds, config: Config, share: float) -> Iterator[Batch]:
    """Yield all clouds in order, with that share of outliers; the same ones for every model of the same seed."""
    device = clouds.points.device
    for step, rows in enumerate(torch.arange(len(clouds), device=device).split(TEST_BATCH)):
        random = generator(config.seed, "test", float(share), step, device=device)
        batch = draw(clouds, rows, config.points, random)
        points, replaced = with_outliers(batch.points, share, random, batch.mask)
        yield Batch(points, batch.labels, batch.mask, replaced)
