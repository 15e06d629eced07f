"""Points lie on their surface, spread evenly, and areas are right."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.experiments.pointcloud.data.surfaces import ball, box, disc, tube, wall


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_a_box_has_points_on_its_faces_in_proportion_to_their_areas(random):
    part = box(random, (1.0, 2.0, 3.0), at=(5.0, 0.0, 0.0))
    assert part.area == pytest.approx(22.0)
    reach = np.abs(part.draw(20_000) - (5.0, 0.0, 0.0)) / (0.5, 1.0, 1.5)
    assert np.allclose(reach.max(1), 1.0)
    assert np.isclose(reach, 1.0).mean(0) == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.015)


def test_a_ball_has_points_at_its_radius(random):
    part = ball(random, 2.0, at=(0.0, 1.0, 0.0))
    assert part.area == pytest.approx(16 * np.pi)
    assert np.allclose(np.linalg.norm(part.draw(100) - (0.0, 1.0, 0.0), axis=1), 2.0)


def test_a_wall_is_denser_in_height_where_it_is_wider(random):
    part = wall(random, 0.0, 2.0, 1.5, at=1.0)  # a cone on its tip
    assert part.area == pytest.approx(np.pi * 2.0 * 2.5)
    x, y, z = part.draw(20_000).T
    assert np.allclose(np.hypot(x, z), 2.0 * (y - 1.0) / 1.5)
    assert ((y - 1.0) / 1.5).mean() == pytest.approx(2 / 3, abs=0.01)


def test_a_disc_is_level_and_even(random):
    part = disc(random, 3.0, at=0.5)
    assert part.area == pytest.approx(9 * np.pi)
    x, y, z = part.draw(20_000).T
    assert (y == 0.5).all()
    assert (np.hypot(x, z) < 3.0 / np.sqrt(2)).mean() == pytest.approx(0.5, abs=0.015)


def test_a_tube_keeps_its_distance_from_its_curve(random):
    part = tube(random, lambda t: np.stack((4 * t, 0 * t, 0 * t), 1), 0.3)
    assert part.area == pytest.approx(2 * np.pi * 0.3 * 4)
    x, y, z = part.draw(1000).T
    assert np.allclose(np.hypot(y, z), 0.3)
    assert x.min() >= -1e-6 and x.max() <= 4 + 1e-6
