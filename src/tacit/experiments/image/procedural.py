"""A small set of drawn images, for when no other is at hand: ten kinds of figure, placed, turned and sized by chance.

Light falls unevenly, pixels are noisy and a bar of another colour covers a part, so that no pixel gives a class away.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.experiments.common.seeds import seed_of
from tacit.experiments.image.data import ArrayImages

__all__ = ["FIGURES", "procedural"]

Plane = np.ndarray


def _triangle(x: Plane, y: Plane) -> Plane:
    return (y > -0.6) & (y < 1 - 1.6 * np.abs(x) / 0.95)


def _dots(x: Plane, y: Plane) -> Plane:
    return (np.mod(2.5 * x, 1) - 0.5) ** 2 + (np.mod(2.5 * y, 1) - 0.5) ** 2 < 0.09


# Where the figure is, in coordinates that put it within the unit disc or nearly so.
FIGURES: dict[str, Callable[[Plane, Plane], Plane]] = {
    "checks": lambda x, y: (np.hypot(x, y) < 1) & (np.sin(6 * x) * np.sin(6 * y) > 0),
    "crescent": lambda x, y: (np.hypot(x, y) < 1) & (np.hypot(x - 0.5, y) > 0.8),
    "cross": lambda x, y: (np.minimum(np.abs(x), np.abs(y)) < 0.28) & (np.maximum(np.abs(x), np.abs(y)) < 0.95),
    "disc": lambda x, y: np.hypot(x, y) < 0.9,
    "dots": lambda x, y: (np.hypot(x, y) < 1) & _dots(x, y),
    "frame": lambda x, y: (np.maximum(np.abs(x), np.abs(y)) < 0.85) & (np.maximum(np.abs(x), np.abs(y)) > 0.5),
    "ring": lambda x, y: (np.hypot(x, y) < 1) & (np.hypot(x, y) > 0.6),
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) < 0.8,
    "stripes": lambda x, y: (np.hypot(x, y) < 1) & (np.sin(9 * x) > 0),
    "triangle": _triangle,
}


def procedural(count: int, split: str, size: int = 32) -> ArrayImages:
    """Return `count` images, the classes in turn; the same ones for the same `split`, "train" or "val"."""
    random = np.random.default_rng(seed_of("figures", split))
    names = tuple(FIGURES)
    labels = np.arange(count, dtype=np.int64) % len(names)
    pixels = np.empty((count, size, size, 3), dtype=np.uint8)
    for i, label in enumerate(labels):
        pixels[i] = _draw(FIGURES[names[label]], size, random)
    return ArrayImages(names, labels, pixels)


def _draw(figure: Callable[[Plane, Plane], Plane], size: int, random: np.random.Generator) -> np.ndarray:
    fine = np.linspace(-1, 1, 2 * size)
    row, column = np.meshgrid(fine, fine, indexing="ij")
    place, turn = random.uniform(-0.25, 0.25, 2), random.uniform(-0.5, 0.5)
    across, down = column - place[0], row - place[1]
    stretch = random.uniform(0.5, 0.75) * np.exp(random.uniform(-0.15, 0.15) * np.array([1, -1]))
    x = (np.cos(turn) * across + np.sin(turn) * down) / stretch[0]
    y = (np.cos(turn) * down - np.sin(turn) * across) / stretch[1]
    ground, colour, bar = random.uniform(0, 1, (3, 3))
    colour = np.where(np.abs(colour - ground) < 0.3, np.mod(ground + 0.5, 1), colour)
    image = np.where(figure(x, y)[..., None], colour, ground)
    slope, offset = random.uniform(0, 2 * np.pi), random.uniform(-1, 1)
    covered = np.abs(np.cos(slope) * column + np.sin(slope) * row - offset) < 0.05
    image = np.where(covered[..., None], bar, image)
    image = image * (1 + random.uniform(-0.3, 0.3) * column + random.uniform(-0.3, 0.3) * row)[..., None]
    image = image.reshape(size, 2, size, 2, 3).mean((1, 3)) + random.normal(0, 0.04, (size, size, 3))
    return (255 * image.clip(0, 1)).round().astype(np.uint8)
