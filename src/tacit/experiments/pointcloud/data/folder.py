"""A folder a class: `.off`, `.npy` and `.ply` files, labelled by the folder they are in.

    DATA/chair/train/*.off, DATA/chair/test/*.off       as ModelNet40 is unpacked
    DATA/train/chair/*.npy, DATA/test/chair/*.npy
    DATA/chair/*.ply                                    every fifth cloud of a class, in a fixed random order, is a test

Reading many files is slow, so the result is kept (see `cache.py`).
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch

from tacit.experiments.common.errors import DataError
from tacit.experiments.common.progress import Progress
from tacit.experiments.common.seeds import seed_of
from tacit.experiments.pointcloud.data.cache import cached
from tacit.experiments.pointcloud.data.clouds import Clouds, checked, padded
from tacit.experiments.pointcloud.data.meshes import READERS, read_cloud

__all__ = ["listed", "read_folder"]

Files = list[tuple[Path, int]]  # with the label


def read_folder(folder: Path, points: int, seed: int = 0) -> tuple[Clouds, Clouds]:
    """Return the training and the test split, at most `points` points a cloud."""
    classes, splits = listed(folder, seed)
    try:
        read = [cached(files, (points, seed), functools.partial(_read, files, points, seed)) for files in splits]
    except OSError as error:
        raise DataError(f"{folder}, or the cache of it, cannot be used: {error}.") from None
    train, test = (
        checked(data["points"], data["labels"], classes, f"{folder}, {split}", data["counts"], folder.name)
        for split, data in zip(("train", "test"), read)
    )
    return train, test


def listed(folder: Path, seed: int = 0) -> tuple[tuple[str, ...], tuple[Files, Files]]:
    """Return the classes, and the files of the training and the test split with their labels.

    Raises:
        DataError: there are none, or a class has no training file.
    """
    both = all((folder / split).is_dir() for split in ("train", "test"))
    roots = [folder / "train", folder / "test"] if both else [folder]
    classes = tuple(sorted({child.name for root in roots for child in root.iterdir() if _is_class(child)}))
    splits: tuple[Files, Files] = ([], [])
    for label, name in enumerate(classes):
        if both:
            parts = [_files(root / name) for root in roots]
        elif (folder / name / "train").is_dir():
            parts = [_files(folder / name / split) for split in ("train", "test")]
        else:
            files = _files(folder / name)
            order = np.random.default_rng(seed_of(seed, "split", name)).permutation(len(files))
            parts = [[files[i] for i in order if i % 5], [files[i] for i in order if i % 5 == 0]]
        if not parts[0]:
            raise DataError(f"The class '{name}' in {folder} has no training file ({', '.join(READERS)}).")
        for split, files in zip(splits, parts):
            split += [(path, label) for path in files]
    if not splits[0] or not splits[1]:
        raise DataError(
            f"{folder} holds no data in a known form: train-*.npz shards, the HDF5 files of ModelNet40 with their lists, "
            f"or a folder a class with {', '.join(READERS)} files in it."
        )
    return classes, splits


def _is_class(child: Path) -> bool:
    return child.is_dir() and not child.name.startswith((".", "__"))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix.lower() in READERS)


def _read(files: Files, points: int, seed: int) -> dict[str, torch.Tensor]:
    clouds = []
    with Progress("reading", len(files)) as progress:
        for done, (path, _) in enumerate(files, 1):
            clouds.append(read_cloud(path, points, np.random.default_rng(seed_of(seed, "points", path.name))))
            progress.update(done)
    packed, counts = padded(clouds, points, torch.Generator().manual_seed(seed))
    return {"points": packed, "labels": torch.tensor([label for _, label in files]), "counts": counts}
