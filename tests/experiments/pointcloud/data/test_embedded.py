"""Shapes made here are the same each time, and no two of a class are alike."""

from __future__ import annotations

import numpy as np
import torch

from tacit.experiments.pointcloud.data.embedded import CLASSES, embedded, shape


def test_there_are_ten_classes_and_more_in_equal_parts():
    train, test = embedded(train=2 * len(CLASSES), test=len(CLASSES), points=32)
    assert len(CLASSES) >= 10
    assert train.labels.bincount().tolist() == [2] * len(CLASSES)
    assert test.labels.bincount().tolist() == [1] * len(CLASSES)


def test_the_same_seed_makes_the_same_and_the_splits_differ():
    first, again, other = (embedded(train=26, test=26, points=32, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first[0].points, again[0].points)
    assert not torch.equal(first[0].points, other[0].points)
    assert not torch.equal(first[0].points, first[1].points)


def test_a_shape_has_as_many_points_as_asked_all_finite_and_varies():
    for name in CLASSES:
        first, second = (shape(name, 50, np.random.default_rng(seed)) for seed in (1, 2))
        assert first.shape == (50, 3) and np.isfinite(first).all()
        assert np.abs(first - second).max() > 0.05
