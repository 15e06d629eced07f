"""Surfaces that shapes are made of: each knows its area, and how to draw points of itself. The second axis is up."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["Part", "Points", "Random", "ball", "box", "disc", "tube", "wall"]

Random = np.random.Generator
Points = np.ndarray  # (n, 3)


class Part(NamedTuple):
    """A surface: its area, and how to draw n points of it."""

    area: float
    draw: Callable[[int], Points]


def box(random: Random, size: tuple[float, float, float], at: tuple[float, float, float] = (0, 0, 0)) -> Part:
    """A box of that size around `at`."""
    a, b, c = size
    faces = np.array([b * c, a * c, a * b])

    def draw(n: int) -> Points:
        cloud = random.uniform(-0.5, 0.5, (n, 3))
        axis = random.choice(3, n, p=faces / faces.sum())
        cloud[np.arange(n), axis] = np.sign(cloud[np.arange(n), axis]) / 2
        return cloud * size + at

    return Part(2 * float(faces.sum()), draw)


def ball(random: Random, radius: float, at: tuple[float, float, float] = (0, 0, 0)) -> Part:
    """A sphere around `at`."""

    def draw(n: int) -> Points:
        cloud = random.normal(size=(n, 3))
        return radius * cloud / np.linalg.norm(cloud, axis=1, keepdims=True) + at

    return Part(4 * np.pi * radius**2, draw)


def wall(random: Random, low: float, high: float, height: float, at: float = 0.0) -> Part:
    """The side of an upright cylinder or cone from radius `low` at height `at` to `high` above it."""

    def draw(n: int) -> Points:
        u, angle = random.uniform(size=n), random.uniform(0, 2 * np.pi, n)
        radius = np.sqrt(low**2 + (high**2 - low**2) * u)  # its square is uniform where the radius is linear in height
        t = (low + high) * u / (low + radius)
        return np.stack((radius * np.cos(angle), at + height * t, radius * np.sin(angle)), 1)

    return Part(np.pi * (low + high) * float(np.hypot(height, high - low)), draw)


def disc(random: Random, radius: float, at: float = 0.0) -> Part:
    """A level disc around the vertical axis, at that height."""

    def draw(n: int) -> Points:
        angle, r = random.uniform(0, 2 * np.pi, n), radius * np.sqrt(random.uniform(size=n))
        return np.stack((r * np.cos(angle), np.full(n, at), r * np.sin(angle)), 1)

    return Part(np.pi * radius**2, draw)


def tube(random: Random, curve: Callable[[Points], Points], radius: float) -> Part:
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
