"""Clouds of points with labels, checked and normalised: centred, and scaled into the unit ball."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from tacit.experiments.common.errors import DataError
from tacit.shapes import Float, Int, Tensor

__all__ = ["Clouds", "as_tensors", "checked", "normalised", "padded"]

_AT_ONCE = 1024  # clouds normalised at a time, so that a copy in float32 stays small


@dataclass(frozen=True)
class Clouds:
    """A split of a data set.

    Attributes:
        points: float16 or float32; a cloud of fewer points is filled up.
        labels: of the classes.
        classes: their names.
        counts: how many points of each cloud are real; None where all are.
        source: in a few words, where they are from.
    """

    points: Float[Tensor, "m n 3"]
    labels: Int[Tensor, " m"]
    classes: tuple[str, ...]
    counts: Int[Tensor, " m"] | None = None
    source: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Clouds:
        """Return the same on a device."""
        counts = None if self.counts is None else self.counts.to(device)
        return replace(self, points=self.points.to(device), labels=self.labels.to(device), counts=counts)

    def take(self, rows: Tensor) -> Clouds:
        """Return the clouds of these rows."""
        counts = None if self.counts is None else self.counts[rows]
        return replace(self, points=self.points[rows], labels=self.labels[rows], counts=counts)

    def spread(self, count: int) -> Clouds:
        """Return `count` clouds at equal distances; all, if 0 or more than there are."""
        if not 0 < count < len(self):
            return self
        return self.take(torch.linspace(0, len(self) - 1, count).round().long())


def as_tensors(points: np.ndarray, labels: np.ndarray, where: str) -> tuple[Tensor, Tensor]:
    """Return arrays of a file as tensors, or raise DataError where they are no real numbers and no whole ones."""
    if points.dtype.kind != "f" or points.dtype.itemsize > 8:
        raise DataError(f"{where}: points should be floating, of at most 64 bits; they are {points.dtype}.")
    if labels.dtype.kind not in "iu":
        raise DataError(f"{where}: labels should be whole numbers; they are {labels.dtype}.")
    return torch.from_numpy(points), torch.from_numpy(labels.astype(np.int64))


def checked(
    points: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    where: str | Path,
    counts: Tensor | None = None,
    source: str = "",
) -> Clouds:
    """Return normalised `Clouds`, or say which row of which file cannot be right.

    Raises:
        DataError: shapes that do not fit, numbers that are not finite, labels of no class, a cloud without extent.
    """
    if points.ndim != 3 or points.shape[-1] != 3 or not points.is_floating_point():
        raise DataError(
            f"{where}: points should be floating, of shape (clouds, points, 3); they are {points.dtype}, "
            f"{tuple(points.shape)}."
        )
    if labels.shape != points.shape[:1]:
        raise DataError(
            f"{where}: {len(points)} clouds but labels of shape {tuple(labels.shape)}; one a cloud is needed."
        )
    if not len(points):
        raise DataError(f"{where}: there are no clouds in it.")
    labels = labels.long()
    _refuse(where, (labels < 0) | (labels >= len(classes)), f"has a label outside 0 to {len(classes) - 1}")
    _refuse(where, ~points.isfinite().flatten(1).all(1), "has a coordinate that is not finite")
    if counts is not None:
        _refuse(where, counts < 1, "has no points")
        if bool((counts == points.shape[1]).all()):
            counts = None
    centred, extent = normalised(points, counts)
    _refuse(where, extent == 0, "has all its points in one place")
    _refuse(where, ~extent.isfinite(), "has coordinates too large to be centred")
    return Clouds(centred, labels, tuple(classes), counts, source)


def _refuse(where: str | Path, bad: Tensor, why: str) -> None:
    if bool(bad.any()):
        rows = bad.nonzero().flatten().tolist()
        more = f" (and {len(rows) - 1} others)" if len(rows) > 1 else ""
        raise DataError(f"{where}: row {rows[0]}{more} {why}. Mend or remove it.")


def normalised(
    points: Float[Tensor, "m n 3"], counts: Int[Tensor, " m"] | None = None
) -> tuple[Float[Tensor, "m n 3"], Float[Tensor, " m"]]:
    """Return the clouds with their mean at 0 and their farthest point at 1, and how far that was; holes become 0.

    Coordinates of 64 bits are centred as such before they become 32: of a place on a map, digits would be lost.
    """
    parts, extents, kind = [], [], torch.promote_types(points.dtype, torch.float32)
    for start in range(0, len(points), _AT_ONCE):
        chunk = points[start : start + _AT_ONCE].to(kind)
        real = torch.ones(chunk.shape[:2], dtype=torch.bool)
        if counts is not None:
            real = torch.arange(chunk.shape[1]) < counts[start : start + _AT_ONCE, None]
        weight = real[..., None].to(kind)
        centred = (chunk - (chunk * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)) * weight
        extent = centred.norm(dim=2).amax(1)
        scaled = centred / extent.clamp(min=torch.finfo(kind).tiny)[:, None, None]
        parts.append(scaled.to(torch.float16 if points.dtype == torch.float16 else torch.float32))
        extents.append(extent)
    return torch.cat(parts), torch.cat(extents)


def padded(clouds: Sequence[Tensor], most: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return clouds of different sizes as one tensor and their sizes; a larger one than `most` is thinned to that."""
    thinned = [
        cloud if len(cloud) <= most else cloud[torch.randperm(len(cloud), generator=random)[:most]] for cloud in clouds
    ]
    counts = torch.tensor([len(cloud) for cloud in thinned])
    points = torch.zeros(len(thinned), max(1, int(counts.max())), 3, dtype=thinned[0].dtype)
    for row, cloud in zip(points, thinned):
        row[: len(cloud)] = cloud
    return points, counts
