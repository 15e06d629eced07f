"""Clouds from NumPy's .npz: one file with both splits, or a folder of `train-*.npz` and `test-*.npz`.

One file has `train_points` (m, n, 3), `train_labels` (m,), `test_points`, `test_labels` and `class_names`. A shard has
`points`, `labels` and `class_names`; the shards of a split are joined in order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from tacit.errors import nearest
from tacit.experiments.common import arrays as common
from tacit.experiments.common.errors import DataError
from tacit.experiments.pointcloud.data.clouds import Clouds, as_tensors, checked

__all__ = ["read_npz", "read_shards", "shards"]


def read_npz(path: Path) -> tuple[Clouds, Clouds]:
    """Return the training and the test split of one file."""
    arrays = _arrays(path, [f"{split}_{what}" for split in ("train", "test") for what in ("points", "labels")])
    classes = _classes(arrays)
    train, test = (
        checked(
            *as_tensors(arrays[f"{split}_points"], arrays[f"{split}_labels"], f"{path}, {split}"),
            classes,
            f"{path}, {split}",
            source=path.name,
        )
        for split in ("train", "test")
    )
    return train, test


def read_shards(folder: Path) -> tuple[Clouds, Clouds]:
    """Return the training and the test split of a folder of shards."""
    train, test = (_joined(shards(folder, split), folder, split) for split in ("train", "test"))
    if train.classes != test.classes:
        raise DataError(f"{folder}: class_names of train-*.npz and test-*.npz differ. A label would mean two things.")
    return train, test


def shards(folder: Path, split: str) -> list[Path]:
    """Return the shards of a split, in the folder or in folders within it, in order of their names."""
    return sorted(folder.rglob(f"{split}-*.npz"), key=lambda path: path.name)


def _joined(paths: list[Path], folder: Path, split: str) -> Clouds:
    if not paths:
        raise DataError(f"{folder} has no {split}-*.npz. Is the folder complete?")
    parts = []
    for path in paths:
        arrays = _arrays(path, ["points", "labels"])
        points, labels = as_tensors(arrays["points"], arrays["labels"], str(path))
        parts.append(checked(points, labels, _classes(arrays), path))
        if parts[-1].classes != parts[0].classes or points.shape[1] != parts[0].points.shape[1]:
            raise DataError(f"{path} and {paths[0]} differ in their classes or in points a cloud.")
    points = torch.cat([part.points for part in parts])
    return Clouds(points, torch.cat([part.labels for part in parts]), parts[0].classes, source=folder.name)


def _arrays(path: Path, needed: Iterable[str]) -> dict[str, np.ndarray]:
    arrays = common.read_npz(path)
    for name in [*needed, "class_names"]:
        if name not in arrays:
            raise DataError(f"{path} has no array '{name}'.{nearest(name, arrays)} It has: {', '.join(arrays)}.")
    return arrays


def _classes(arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    return tuple(map(str, arrays["class_names"].reshape(-1)))
