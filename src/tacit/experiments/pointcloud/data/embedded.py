"""Shapes made here: classes of clouds with nothing to fetch.

A shape is a few surfaces (see `shapes.py`) sampled by area; then it is stretched, tapered, bent, turned about the
vertical (the second axis) and tilted a little, seen from one side only, and noisy.
"""

from __future__ import annotations

import numpy as np
import torch

from tacit.experiments.common.seeds import seed_of
from tacit.experiments.pointcloud.data.clouds import Clouds, checked
from tacit.experiments.pointcloud.data.shapes import MAKERS
from tacit.experiments.pointcloud.data.surfaces import Points, Random

__all__ = ["CLASSES", "embedded", "shape"]

CLASSES = tuple(MAKERS)


def embedded(train: int = 1560, test: int = 520, points: int = 1024, seed: int = 0) -> tuple[Clouds, Clouds]:
    """Return a training and a test split of that many clouds, classes in turn.

    >>> train, test = embedded(train=52, test=26, points=64)
    >>> train.points.shape, len(train.classes)
    (torch.Size([52, 64, 3]), 26)
    """
    splits = []
    for name, count in (("train", train), ("test", test)):
        labels = torch.arange(count) % len(CLASSES)
        clouds = np.empty((count, points, 3), np.float32)
        for row in range(count):
            random = np.random.default_rng(seed_of(seed, "embedded", name, row))
            clouds[row] = shape(CLASSES[row % len(CLASSES)], points, random)
        splits.append(checked(torch.from_numpy(clouds), labels, CLASSES, f"embedded {name}", source="embedded shapes"))
    return splits[0], splits[1]


def shape(name: str, points: int, random: Random) -> Points:
    """Return one cloud of a class."""
    parts = MAKERS[name](random)
    drawn = int(points / random.uniform(0.6, 1.0)) + 1  # more than needed: the far side is cut away
    area = np.array([part.area for part in parts])
    counts = random.multinomial(drawn, area / area.sum()).tolist()
    cloud = np.concatenate([part.draw(count) for part, count in zip(parts, counts)])
    cloud = _deformed(cloud, random)
    side = cloud @ _direction(random)
    seen = cloud[np.argsort(side)[:points]]
    extent = np.linalg.norm(seen - seen.mean(0), axis=1).max()
    return seen + random.normal(0, random.uniform(0.002, 0.015) * extent, seen.shape)


def _direction(random: Random) -> Points:
    direction = random.normal(size=3)
    return direction / np.linalg.norm(direction)


def _deformed(cloud: Points, random: Random) -> Points:
    cloud = cloud - cloud.mean(0)
    cloud = cloud / np.abs(cloud).max() * random.uniform(0.8, 1.25, 3)
    x, y, z = cloud.T
    taper, bend = 1 + random.uniform(-0.25, 0.25) * y, random.uniform(-0.2, 0.2)
    x, z = x * taper + bend * y**2, z * taper
    turn, tilt = random.uniform(0, 2 * np.pi), random.normal(0, 0.1)
    x, z = np.cos(turn) * x + np.sin(turn) * z, np.cos(turn) * z - np.sin(turn) * x
    x, y = np.cos(tilt) * x - np.sin(tilt) * y, np.sin(tilt) * x + np.cos(tilt) * y
    return np.stack((x, y, z), 1)
