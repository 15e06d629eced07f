"""Image sets on disk: train/ and val/ of class folders, any folder of class folders, `.npz` files of JPEG bytes.

An `.npz` file, or each of several in a folder, holds `train_jpeg` (all bytes, one after the other), `train_offset`
(where each image begins, and the end) and `train_labels`, likewise for `val`, and `wnids`, the classes' names.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tacit.experiments.common.arrays import read_npz
from tacit.experiments.common.errors import DataError
from tacit.experiments.image.decode import decode

__all__ = ["ArrayImages", "FileImages", "ImageSet", "PackedImages", "SomeImages", "evenly", "load", "narrowed", "some"]

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm"}


@dataclass(frozen=True)
class ImageSet:
    """Labelled images: `labels` (n,) counts through `classes`."""

    classes: tuple[str, ...]
    labels: np.ndarray

    def __len__(self) -> int:
        """How many images."""
        return len(self.labels)

    def image(self, i: int) -> Image.Image:
        """Return image i in RGB, or raise DataError with its name."""
        raise NotImplementedError


@dataclass(frozen=True)
class FileImages(ImageSet):
    """One file an image."""

    paths: tuple[Path, ...]

    def image(self, i: int) -> Image.Image:
        """Return image i in RGB, or raise DataError with its name."""
        return decode(self.paths[i], str(self.paths[i]))


@dataclass(frozen=True)
class PackedImages(ImageSet):
    """Encoded images as one array of bytes; image i is `data[offset[i] : offset[i + 1]]`."""

    data: np.ndarray
    offset: np.ndarray
    where: str

    def image(self, i: int) -> Image.Image:
        """Return image i in RGB, or raise DataError with its name."""
        return decode(self.data[self.offset[i] : self.offset[i + 1]].tobytes(), f"{self.where}, image {i}")


@dataclass(frozen=True)
class ArrayImages(ImageSet):
    """Decoded images of one size."""

    pixels: np.ndarray  # (n, h, w, 3) uint8

    def image(self, i: int) -> Image.Image:
        """Return image i in RGB."""
        return Image.fromarray(self.pixels[i])


@dataclass(frozen=True)
class SomeImages(ImageSet):
    """Some rows of another set."""

    whole: ImageSet
    rows: np.ndarray

    def image(self, i: int) -> Image.Image:
        """Return image i in RGB, or raise DataError with its name."""
        return self.whole.image(int(self.rows[i]))


def some(images: ImageSet, rows: np.ndarray) -> SomeImages:
    """Return the images of these rows."""
    return SomeImages(images.classes, images.labels[rows], images, rows)


def evenly(images: ImageSet, count: int) -> ImageSet:
    """Return at most `count` images, in equal parts of all classes, the first of each."""
    order = np.argsort(images.labels, kind="stable")
    begins = np.searchsorted(images.labels[order], images.labels[order], side="left")
    rank = np.empty(len(images), dtype=np.int64)
    rank[order] = np.arange(len(images)) - begins
    return some(images, np.sort(np.argsort(rank, kind="stable")[:count]))


def narrowed(images: ImageSet, classes: int) -> ImageSet:
    """Return the images of the first `classes` classes, which are then all there are."""
    if classes > len(images.classes):
        raise DataError(f"classes expects at most the {len(images.classes)} that the data have; received {classes}.")
    kept = some(images, np.flatnonzero(images.labels < classes))
    return dataclasses.replace(kept, classes=images.classes[:classes])


def load(path: Path, val_share: float = 0.2) -> tuple[ImageSet, ImageSet]:
    """Return the images to train on and those to validate on.

    Args:
        path: a folder with train/ and val/; a folder of class folders, of which `val_share` is held out by a hash of
            the file names; an `.npz` file; or a folder of them, whose images are taken together.

    Raises:
        DataError: nothing there, another layout, a class without training images; the message names file and row.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: expected a folder of images or an .npz file; nothing is there.")
    return _checked(*_parts(path, val_share), path)


def _parts(path: Path, val_share: float) -> tuple[ImageSet, ImageSet]:
    """Return training and validation images in the layout that is found at `path`."""
    if path.is_file():
        return _packed([path])
    if (path / "train").is_dir() or (path / "val").is_dir():
        return _folder(path / "train"), _folder(path / "val")
    if shards := sorted(path.glob("*.npz")):
        return _packed(shards)
    return _held_out(_folder(path), val_share)


def _folder(path: Path) -> FileImages:
    """Return the images of a folder of class folders."""
    if not path.is_dir():
        raise DataError(f"{path}: expected a folder with one folder a class; nothing is there.")
    classes = sorted(p.name for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not classes:
        loose = any(p.suffix.lower() in SUFFIXES for p in path.iterdir())
        found = "images that no folder gives a class" if loose else "no folder"
        raise DataError(f"{path}: expected one folder a class; received {found}. Sort the images by class first.")
    paths: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        inside = sorted(p for p in (path / name).rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        if not inside:
            raise DataError(f"{path / name}: expected images ({', '.join(sorted(SUFFIXES))}); the folder has none.")
        paths += inside
        labels += [label] * len(inside)
    return FileImages(tuple(classes), np.array(labels, dtype=np.int64), tuple(paths))


def _held_out(images: FileImages, share: float) -> tuple[ImageSet, ImageSet]:
    """Split by a hash of the file names: the same files are held out wherever and whenever this runs."""
    chosen = np.zeros(len(images), dtype=bool)
    for label in range(len(images.classes)):
        rows = np.flatnonzero(images.labels == label)
        keys = [hashlib.sha256(images.paths[i].name.encode()).digest() for i in rows]
        by_hash = sorted(range(len(rows)), key=lambda k: (keys[k], images.paths[rows[k]]))
        chosen[rows[by_hash[: round(share * len(rows))]]] = True
    return some(images, np.flatnonzero(~chosen)), some(images, np.flatnonzero(chosen))


def _packed(files: list[Path]) -> tuple[PackedImages, PackedImages]:
    """Return the images of `.npz` files, taken together."""
    where = str(files[0] if len(files) == 1 else files[0].parent)
    arrays = [read_npz(file) for file in files]
    names = [tuple(str(name) for name in a["wnids"]) if "wnids" in a else None for a in arrays]
    for file, own in zip(files, names):
        if own != names[0]:
            raise DataError(f"{file}: wnids expects the class names of {files[0]}; received others.")

    def part(split: str) -> PackedImages:
        holds = [(file, a) for file, a in zip(files, arrays) if f"{split}_jpeg" in a]
        if not holds:
            raise DataError(
                f"{where}: expected {split}_jpeg, {split}_offset and {split}_labels; received none of them."
            )
        data, offset, labels = [], [np.zeros(1, dtype=np.int64)], []
        for file, a in holds:
            _check_shard(file, split, a)
            data.append(a[f"{split}_jpeg"])
            offset.append(a[f"{split}_offset"][1:].astype(np.int64) + offset[-1][-1])
            labels.append(a[f"{split}_labels"].astype(np.int64))
        every = np.concatenate(labels)
        count = int(every.max(initial=-1)) + 1
        classes = names[0] if names[0] is not None else tuple(str(k) for k in range(count))
        if every.min(initial=0) < 0 or count > len(classes):
            raise DataError(
                f"{where}: {split}_labels expects numbers from 0 to {len(classes) - 1}; received {every.min()} to "
                f"{every.max()}."
            )
        return PackedImages(classes, every, np.concatenate(data), np.concatenate(offset), f"{where}, {split}")

    return part("train"), part("val")


def _check_shard(file: Path, split: str, a: dict[str, np.ndarray]) -> None:
    """Raise unless offsets and labels of one file fit its bytes."""
    for key in (f"{split}_offset", f"{split}_labels"):
        if key not in a:
            raise DataError(f"{file}: expected {key} beside {split}_jpeg; received {sorted(a)}.")
    data, offset, labels = a[f"{split}_jpeg"], a[f"{split}_offset"], a[f"{split}_labels"]
    if data.dtype != np.uint8 or data.ndim != 1:
        raise DataError(f"{file}: {split}_jpeg expects bytes (uint8) in a row; received {data.dtype} {data.shape}.")
    for key, array in ((f"{split}_offset", offset), (f"{split}_labels", labels)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise DataError(f"{file}: {key} expects whole numbers in a row; received {array.dtype} {array.shape}.")
    if len(offset) != len(labels) + 1:
        raise DataError(
            f"{file}: {split}_offset expects one number more than {split}_labels has, {len(labels) + 1}; received "
            f"{len(offset)}."
        )
    steps = np.diff(offset.astype(np.int64))
    if (steps <= 0).any():
        row = int(np.argmax(steps <= 0))
        raise DataError(f"{file}: {split}_offset expects growing numbers; it does not grow after row {row}.")
    if offset[0] != 0 or offset[-1] != len(data):
        raise DataError(
            f"{file}: {split}_offset expects to run from 0 to the {len(data)} bytes of {split}_jpeg; received "
            f"{offset[0]} to {offset[-1]}. The file is truncated, or the two do not belong together."
        )


def _checked(train: ImageSet, val: ImageSet, path: Path) -> tuple[ImageSet, ImageSet]:
    """Insist that every class can be learnt, and give both parts the same classes."""
    unknown = sorted({val.classes[k] for k in np.unique(val.labels)} - set(train.classes))
    if unknown:
        raise DataError(
            f"{path}: {len(unknown)} classes are in val and not in train: {_few(unknown)}. Nothing can be learnt of "
            "them: add training images, or remove them from val."
        )
    missing = [train.classes[k] for k in np.setdiff1d(np.arange(len(train.classes)), train.labels)]
    if missing:
        raise DataError(
            f"{path}: {len(missing)} classes have no training image: {_few(missing)}. Add some, or drop them."
        )
    if not len(val):
        raise DataError(f"{path}: expected at least one image to validate on; received none. Raise val_share.")
    index = {name: k for k, name in enumerate(train.classes)}
    labels = np.array([index[name] for name in val.classes], dtype=np.int64)[val.labels]
    return train, dataclasses.replace(val, classes=train.classes, labels=labels)


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
