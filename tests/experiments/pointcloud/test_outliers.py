"""Outliers are uniform in the unit ball, as many as asked, anywhere in the cloud, and the same for the same seed."""

from __future__ import annotations

import pytest
import torch

from tacit.experiments.pointcloud.outliers import in_unit_ball, with_outliers


def random(seed=0):
    return torch.Generator().manual_seed(seed)


def test_samples_fill_the_ball_uniformly():
    points = in_unit_ball(40000, generator=random())
    radius = points.norm(dim=1)
    assert radius.max() <= 1 + 1e-6
    # The share within radius r is r^3; each coordinate has mean 0 and variance 1/5.
    for r in (0.3, 0.5, 0.8):
        assert abs((radius < r).float().mean() - r**3) < 4 * (r**3 * (1 - r**3) / 40000) ** 0.5
    assert points.mean(0).abs().max() < 0.01
    assert (points.var(0) - 0.2).abs().max() < 0.01


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9, 1.0])
def test_just_the_share_is_replaced_and_the_rest_is_untouched(share):
    cloud = torch.full((3, 200, 3), 5.0)
    spoilt, replaced = with_outliers(cloud, share, random())
    assert replaced.sum(1).tolist() == [round(200 * share)] * 3
    assert (spoilt[~replaced] == 5).all()
    assert (spoilt[replaced].norm(dim=-1) <= 1 + 1e-6).all()


def test_each_cloud_has_its_own_outliers_at_its_own_places():
    _, replaced = with_outliers(torch.zeros(2, 100, 3), 0.5, random())
    assert not torch.equal(replaced[0], replaced[1])
    counts = with_outliers(torch.zeros(400, 20, 3), 0.5, random())[1].sum(0)
    assert (counts - 200).abs().max() < 4 * (400 * 0.25) ** 0.5  # every place as often


def test_the_same_seed_spoils_the_same_way():
    cloud = torch.randn(2, 50, 3)
    first, again, other = (with_outliers(cloud, 0.3, random(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_points_that_do_not_exist_are_neither_counted_nor_replaced():
    mask = torch.arange(20) < torch.tensor([[20], [10], [1]])
    spoilt, replaced = with_outliers(torch.zeros(3, 20, 3), 0.5, random(), mask)
    assert replaced.sum(1).tolist() == [10, 5, 0]
    assert not replaced[~mask].any() and not spoilt[~mask].any()
