"""Small images in many forms, for the tests of this folder."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int, width: int = 24, height: int = 20) -> Image.Image:
    """A smooth random image."""
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, format: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format)
    return buffer.getvalue()


def class_folders(root: Path, classes: dict[str, int], seed: int = 0) -> Path:
    """A folder of class folders with so many images each."""
    for k, (name, count) in enumerate(classes.items()):
        (root / name).mkdir(parents=True)
        for i in range(count):
            (root / name / f"{i}.png").write_bytes(encoded(picture(seed + 100 * k + i)))
    return root


def packed(path: Path, train: list[int], val: list[int], **changed: np.ndarray) -> Path:
    """An `.npz` file of images with these labels; `changed` replaces arrays, and None leaves them out."""
    arrays: dict[str, np.ndarray | None] = {"wnids": np.array(["cat", "dog", "owl"])}
    for split, labels in (("train", train), ("val", val)):
        files = [encoded(picture(7 * label + i)) for i, label in enumerate(labels)]
        arrays[f"{split}_jpeg"] = np.frombuffer(b"".join(files), dtype=np.uint8)
        arrays[f"{split}_offset"] = np.cumsum([0, *map(len, files)])
        arrays[f"{split}_labels"] = np.array(labels, dtype=np.uint8)
    arrays.update(changed)
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return path
