"""Shapes made here: fourteen classes of clouds with nothing to fetch.

A shape is a few surfaces whose sizes are drawn anew each time, sampled by area; then it is stretched, tapered, bent,
turned about the vertical (the second axis) and tilted a little, seen from one side only, and noisy. Some classes differ
by a part alone: a mug is a cylinder with a handle, a chair a table with a back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from tacit.experiments.common.seeds import seed_of
from tacit.experiments.pointcloud.data.clouds import Clouds, checked

__all__ = ["CLASSES", "embedded", "shape"]

Random = np.random.Generator
Points = np.ndarray  # (n, 3)


class Part(NamedTuple):
    """A surface: its area, and how to draw n points of it."""

    area: float
    draw: Callable[[int], Points]


def embedded(train: int = 1680, test: int = 560, points: int = 1024, seed: int = 0) -> tuple[Clouds, Clouds]:
    """Return a training and a test split of that many clouds, classes in turn.

    >>> train, test = embedded(train=28, test=14, points=64)
    >>> train.points.shape, len(train.classes)
    (torch.Size([28, 64, 3]), 14)
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
    parts = _MAKERS[name](random)
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


# --- surfaces --------------------------------------------------------------------------------------------------------


def _box(random: Random, size: tuple[float, float, float], at: tuple[float, float, float] = (0, 0, 0)) -> Part:
    a, b, c = size
    faces = np.array([b * c, a * c, a * b])

    def draw(n: int) -> Points:
        cloud = random.uniform(-0.5, 0.5, (n, 3))
        axis = random.choice(3, n, p=faces / faces.sum())
        cloud[np.arange(n), axis] = np.sign(cloud[np.arange(n), axis]) / 2
        return cloud * size + at

    return Part(2 * float(faces.sum()), draw)


def _ball(random: Random, radius: float, at: tuple[float, float, float] = (0, 0, 0)) -> Part:
    def draw(n: int) -> Points:
        cloud = random.normal(size=(n, 3))
        return radius * cloud / np.linalg.norm(cloud, axis=1, keepdims=True) + at

    return Part(4 * np.pi * radius**2, draw)


def _wall(random: Random, low: float, high: float, height: float, at: float = 0.0) -> Part:
    """The side of an upright cylinder or cone from radius `low` at height `at` to `high` above it."""

    def draw(n: int) -> Points:
        t = random.uniform(size=4 * n + 16)
        t = t[random.uniform(size=len(t)) * max(low, high) <= low + (high - low) * t][:n]
        t = np.resize(t, n)
        angle, radius = random.uniform(0, 2 * np.pi, n), low + (high - low) * t
        return np.stack((radius * np.cos(angle), at + height * t, radius * np.sin(angle)), 1)

    return Part(np.pi * (low + high) * float(np.hypot(height, high - low)), draw)


def _disc(random: Random, radius: float, at: float = 0.0) -> Part:
    def draw(n: int) -> Points:
        angle, r = random.uniform(0, 2 * np.pi, n), radius * np.sqrt(random.uniform(size=n))
        return np.stack((r * np.cos(angle), np.full(n, at), r * np.sin(angle)), 1)

    return Part(np.pi * radius**2, draw)


def _tube(random: Random, curve: Callable[[Points], Points], radius: float) -> Part:
    """A tube of that radius around a curve of t in [0, 1], of nearly constant speed."""
    length = float(np.linalg.norm(np.diff(curve(np.linspace(0, 1, 100)), axis=0), axis=1).sum())

    def draw(n: int) -> Points:
        t = random.uniform(size=n)
        around = random.normal(size=(n, 3))
        along = curve(t + 1e-4) - curve(t - 1e-4)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        around -= (around * along).sum(1, keepdims=True) * along
        return curve(t) + radius * around / np.linalg.norm(around, axis=1, keepdims=True)

    return Part(2 * np.pi * radius * length, draw)


# --- classes ---------------------------------------------------------------------------------------------------------


def _sphere(random: Random) -> list[Part]:
    return [_ball(random, 1.0)]


def _crate(random: Random) -> list[Part]:
    a, b, c = random.uniform(0.6, 1.4, 3)
    return [_box(random, (a, b, c))]


def _cylinder(random: Random) -> list[Part]:
    radius, height = random.uniform(0.4, 0.7), random.uniform(0.9, 1.6)
    return [_wall(random, radius, radius, height), _disc(random, radius), _disc(random, radius, height)]


def _cone(random: Random) -> list[Part]:
    low, high, height = random.uniform(0.6, 0.9), random.uniform(0.0, 0.3), random.uniform(1.0, 1.6)
    return [_wall(random, low, high, height), _disc(random, low)]


def _ring(random: Random) -> list[Part]:
    def curve(t: Points) -> Points:
        return np.stack((np.cos(2 * np.pi * t), 0 * t, np.sin(2 * np.pi * t)), 1)

    return [_tube(random, curve, random.uniform(0.15, 0.45))]


def _knot(random: Random) -> list[Part]:
    size = random.uniform(0.25, 0.4)

    def curve(t: Points) -> Points:
        s = 2 * np.pi * t
        flat = np.stack((np.sin(s) + 2 * np.sin(2 * s), -np.sin(3 * s), np.cos(s) - 2 * np.cos(2 * s)), 1)
        return size * flat

    return [_tube(random, curve, random.uniform(0.06, 0.16))]


def _spring(random: Random) -> list[Part]:
    turns, height = random.uniform(2.5, 5), random.uniform(1.2, 2.2)

    def curve(t: Points) -> Points:
        s = 2 * np.pi * turns * t
        return np.stack((0.5 * np.cos(s), height * t, 0.5 * np.sin(s)), 1)

    return [_tube(random, curve, random.uniform(0.04, 0.1))]


def _table(random: Random) -> list[Part]:
    a, c, height, thick = (*random.uniform(0.8, 1.6, 2), random.uniform(0.6, 1.1), random.uniform(0.05, 0.12))
    leg = random.uniform(0.06, 0.12)
    corners = [(x * (a / 2 - leg), height / 2, z * (c / 2 - leg)) for x in (-1, 1) for z in (-1, 1)]
    return [_box(random, (a, thick, c), (0, height, 0)), *(_box(random, (leg, height, leg), at) for at in corners)]


def _chair(random: Random) -> list[Part]:
    parts, back = _table(random), random.uniform(0.6, 1.2)
    seat = parts[0].draw(256)
    (x0, _, z0), (_, y1, z1) = seat.min(0), seat.max(0)
    return [*parts, _box(random, (0.07, back, z1 - z0), (x0, y1 + back / 2, (z0 + z1) / 2))]


def _lamp(random: Random) -> list[Part]:
    height, foot, shade = random.uniform(1.2, 1.8), random.uniform(0.25, 0.45), random.uniform(0.35, 0.6)
    return [
        _disc(random, foot),
        _wall(random, 0.05, 0.05, height),
        _wall(random, shade, shade * random.uniform(0.4, 0.8), random.uniform(0.35, 0.6), height * 0.8),
    ]


def _mug(random: Random) -> list[Part]:
    radius, height = random.uniform(0.4, 0.6), random.uniform(0.8, 1.2)
    reach = random.uniform(0.25, 0.4)

    def handle(t: Points) -> Points:
        s = np.pi * (t - 0.5)
        return np.stack((radius + reach * np.cos(s), height / 2 + 0.35 * height * np.sin(s), 0 * t), 1)

    return [_wall(random, radius, radius, height), _disc(random, radius), _tube(random, handle, 0.07)]


def _plane(random: Random) -> list[Part]:
    length, span, depth = random.uniform(1.6, 2.2), random.uniform(1.4, 2.4), random.uniform(0.25, 0.45)
    sweep = random.uniform(-0.1, 0.3)

    def body(t: Points) -> Points:
        return np.stack((length * (t - 0.5), 0 * t, 0 * t), 1)

    return [
        _tube(random, body, random.uniform(0.09, 0.16)),
        _box(random, (depth, 0.04, span), (sweep - 0.1, 0, 0)),
        _box(random, (0.2, 0.03, span / 3), (0.45 * length, 0.05, 0)),
        _box(random, (0.2, 0.35, 0.03), (0.45 * length, 0.2, 0)),
    ]


def _stairs(random: Random) -> list[Part]:
    steps, width = int(random.integers(3, 7)), random.uniform(0.6, 1.2)
    rise, tread = random.uniform(0.8, 1.4) / steps, 1.4 / steps
    return [
        _box(random, (tread, rise * (i + 1), width), (tread * (i + 0.5), rise * (i + 1) / 2, 0)) for i in range(steps)
    ]


def _shelf(random: Random) -> list[Part]:
    boards, width, height, depth = (
        int(random.integers(3, 6)),
        random.uniform(0.7, 1.2),
        random.uniform(1.2, 2),
        random.uniform(0.25, 0.5),
    )
    levels = np.linspace(0, height, boards)
    sides = [_box(random, (0.05, height, depth), (x * width / 2, height / 2, 0)) for x in (-1, 1)]
    return [*sides, *(_box(random, (width, 0.05, depth), (0, level, 0)) for level in levels)]


_MAKERS: dict[str, Callable[[Random], list[Part]]] = {
    "chair": _chair,
    "cone": _cone,
    "crate": _crate,
    "cylinder": _cylinder,
    "knot": _knot,
    "lamp": _lamp,
    "mug": _mug,
    "plane": _plane,
    "ring": _ring,
    "shelf": _shelf,
    "sphere": _sphere,
    "spring": _spring,
    "stairs": _stairs,
    "table": _table,
}
CLASSES = tuple(_MAKERS)
