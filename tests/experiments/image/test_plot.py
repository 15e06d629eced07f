"""Figures are drawn from what was gathered, the same bytes for the same numbers."""

from __future__ import annotations

import pytest

from tacit.experiments.common.errors import DataError
from tacit.experiments.image.model import MODELS
from tacit.experiments.image.plot import draw, pooled


def found() -> dict:
    bins = {"count": [0, 10, 30], "confidence": [0.0, 0.5, 0.9], "accuracy": [0.0, 0.4, 0.8]}
    runs = {}
    for k, model in enumerate(MODELS):
        for seed in (0, 1):
            measured = dict.fromkeys(("top1", "map", "map_scores", "ece"), 0.3 + 0.02 * k + 0.01 * seed)
            runs[f"{model}-seed{seed}"] = {"config": {"model": model, "seed": seed}, "reliability": bins, **measured}
    return {"runs": runs}


def test_both_figures_are_drawn_and_are_the_same_every_time(tmp_path):
    paths = draw(found(), tmp_path / "a")
    assert [path.name for path in paths] == ["measures.svg", "reliability.svg"]
    again = draw(found(), tmp_path / "b")
    for one, other in zip(paths, again):
        assert one.read_bytes() == other.read_bytes() and len(one.read_bytes()) > 10_000


def test_part_of_the_models_is_drawn_too(tmp_path):
    part = found()
    part["runs"] = {name: run for name, run in part["runs"].items() if name.startswith("l2")}
    assert all(path.exists() for path in draw(part, tmp_path))


def test_seeds_are_pooled_bin_by_bin():
    one = {"reliability": {"count": [1, 0], "confidence": [0.2, 0.0], "accuracy": [1.0, 0.0]}}
    other = {"reliability": {"count": [3, 2], "confidence": [0.4, 0.9], "accuracy": [0.0, 0.5]}}
    confidence, accuracy, count = pooled([one, other])
    assert confidence == pytest.approx([0.35, 0.9]) and accuracy == pytest.approx([0.25, 0.5]) and count == [4, 2]


def test_nothing_to_draw_is_said(tmp_path):
    with pytest.raises(DataError, match="no finished runs"):
        draw({}, tmp_path)
