"""Batches are those of their place: seed, epoch and step; several processes share one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tacit.errors import OptionError
from tacit.experiments.common.distributed import World
from tacit.experiments.pointcloud.batches import augmented, draw, steps_of, training_batches, trial_batches
from tacit.experiments.pointcloud.config import Config
from tacit.experiments.pointcloud.data.clouds import Clouds

ALONE = World(torch.device("cpu"))
CONFIG = Config(batch=4, points=10, outliers=0.2, jitter=0.01, rotate=True)


def clouds(counts=None):
    points = torch.randn(14, 16, 3, generator=torch.Generator().manual_seed(0))
    return Clouds(points, torch.arange(14), tuple("abcdefghijklmn"), counts)


def test_an_epoch_has_every_cloud_at_most_once_and_another_epoch_another_order():
    first, second = ([batch.labels for batch in training_batches(clouds(), CONFIG, ALONE, epoch)] for epoch in (0, 1))
    assert [len(labels) for labels in first] == [4, 4, 4]
    assert len(torch.cat(first).unique()) == 12
    assert not torch.equal(torch.cat(first), torch.cat(second))


def test_an_epoch_taken_up_in_the_middle_goes_on_with_the_same_bits():
    whole = list(training_batches(clouds(), CONFIG, ALONE, 3))
    rest = list(training_batches(clouds(), CONFIG, ALONE, 3, first=1))
    assert all(torch.equal(left.points, right.points) for left, right in zip(whole[1:], rest, strict=True))


def test_two_processes_see_together_what_one_sees():
    parts = [list(training_batches(clouds(), CONFIG, World(ALONE.device, rank, 2), 0)) for rank in (0, 1)]
    for one, *two in zip(training_batches(clouds(), CONFIG, ALONE, 0), *parts):
        assert torch.equal(one.points, torch.cat([batch.points for batch in two]))
        assert torch.equal(one.labels, torch.cat([batch.labels for batch in two]))


def test_points_are_drawn_without_repeats_and_small_clouds_are_masked():
    data = clouds(torch.arange(3, 17))
    batch = draw(data, torch.arange(14), 10, torch.Generator().manual_seed(0))
    assert batch.points.shape == (14, 10, 3)
    assert batch.mask.sum(1).tolist() == [min(10, count) for count in range(3, 17)]
    for i in range(14):
        drawn = batch.points[i][batch.mask[i]]
        real = data.points[i, : data.counts[i]]
        assert len(drawn.unique(dim=0)) == len(drawn)
        assert (drawn[:, None] == real).all(-1).any(1).all()


def test_all_points_are_taken_as_they_are_when_all_are_wanted():
    batch = draw(clouds(), torch.tensor([2, 5]), 16, torch.Generator())
    assert torch.equal(batch.points, clouds().points[[2, 5]]) and batch.mask is None


def test_rotation_is_about_the_vertical_and_keeps_lengths():
    points = clouds().points
    turned = augmented(points, Config(rotate=True), torch.Generator().manual_seed(0))
    assert torch.equal(turned[..., 1], points[..., 1])
    torch.testing.assert_close(turned.norm(dim=-1), points.norm(dim=-1))
    assert not torch.allclose(turned, points)


def test_the_test_is_the_same_whatever_was_trained_and_differs_with_the_share():
    def points(config, share):
        return torch.cat([batch.points for batch in trial_batches(clouds(), config, share)])

    other = replace(CONFIG, batch=2, pooling="huber", outliers=0.0)
    assert torch.equal(points(CONFIG, 0.3), points(other, 0.3))
    assert not torch.equal(points(CONFIG, 0.3), points(CONFIG, 0.4))
    (batch,) = trial_batches(clouds(), CONFIG, 0.3)
    assert batch.outliers.sum(1).tolist() == [3] * 14


def test_a_batch_that_cannot_be_shared_or_filled_is_refused():
    with pytest.raises(OptionError, match="batch of 4 cannot be shared equally by 3"):
        steps_of(clouds(), CONFIG, World(ALONE.device, 0, 3))
    with pytest.raises(OptionError, match="batch of 20 is more than the 14"):
        steps_of(clouds(), replace(CONFIG, batch=20), ALONE)
