"""Every class is made of surfaces that have area, and no two draws of it are alike."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.experiments.pointcloud.data.shapes import MAKERS


@pytest.mark.parametrize("name", MAKERS)
def test_a_class_is_a_few_surfaces_that_vary(name):
    first, again, other = (MAKERS[name](np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first and all(np.isfinite(part.area) and part.area > 0 for part in first)
    assert [part.area for part in first] == [part.area for part in again]
    for part in first:
        points = part.draw(40)
        assert points.shape == (40, 3) and np.isfinite(points).all()
    if name != "sphere":  # whose variety is all in how it is deformed
        assert [part.area for part in first] != [part.area for part in other]


def test_a_chair_has_its_back_on_the_edge_of_the_seat_and_as_wide():
    seat, *_, back = (part.draw(4000) for part in MAKERS["chair"](np.random.default_rng(0)))
    assert back[:, 1].min() == pytest.approx(seat[:, 1].max())
    assert back[:, 0].mean() == pytest.approx(seat[:, 0].min(), abs=0.01)
    assert np.ptp(back[:, 2]) == pytest.approx(np.ptp(seat[:, 2]))


def test_a_monitor_stands_on_its_foot():
    screen, stem, foot = (part.draw(4000) for part in MAKERS["monitor"](np.random.default_rng(0)))
    assert foot[:, 1].min() < stem[:, 1].min() < foot[:, 1].max()
    assert screen[:, 1].min() < stem[:, 1].max() < screen[:, 1].max()
