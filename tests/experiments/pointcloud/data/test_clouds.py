"""Clouds are centred and scaled over their real points alone."""

from __future__ import annotations

import torch

from tacit.experiments.pointcloud.data.clouds import Clouds, checked, normalised, padded


def test_holes_count_neither_for_the_mean_nor_for_the_extent():
    points = torch.full((1, 4, 3), 100.0)
    points[0, :2] = torch.tensor([[1.0, 0, 0], [3.0, 0, 0]])
    clouds, extent = normalised(points, torch.tensor([2]))
    assert clouds[0].tolist() == [[-1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert extent.item() == 1


def test_millimetres_of_a_place_on_a_map_survive():
    """Coordinates of millions, as surveyors have them: 32 bits would leave a quarter of a unit."""
    shape = torch.randn(2, 30, 3, dtype=torch.float64)
    far, _ = normalised(shape + torch.tensor([5e5, 4e6, 100.0]).double())
    assert far.dtype == torch.float32
    torch.testing.assert_close(far, normalised(shape)[0], rtol=1e-5, atol=1e-6)


def test_normalising_twice_is_normalising_once():
    once, _ = normalised(torch.randn(5, 30, 3))
    torch.testing.assert_close(normalised(once)[0], once)


def test_counts_that_say_nothing_are_dropped():
    points = torch.randn(2, 4, 3)
    assert checked(points, torch.zeros(2), ["a"], "x", torch.tensor([4, 4])).counts is None


def test_clouds_are_spread_over_the_data_and_taken_with_all_that_is_theirs():
    data = Clouds(torch.randn(9, 4, 3), torch.arange(9), tuple("abcdefghi"), torch.arange(1, 10))
    few = data.spread(3)
    assert few.labels.tolist() == [0, 4, 8] and few.counts.tolist() == [1, 5, 9]
    assert torch.equal(few.points, data.points[[0, 4, 8]])
    assert data.spread(0) is data is data.spread(9)


def test_padding_keeps_points_and_thins_a_large_cloud_to_the_most():
    points, counts = padded([torch.ones(2, 3), torch.arange(30.0).reshape(10, 3)], 5, torch.Generator())
    assert counts.tolist() == [2, 5] and points.shape == (2, 5, 3)
    assert points[0].sum() == 6 and len(points[1].unique(dim=0)) == 5
