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
