"""Figures are drawn, and show what they say."""

from __future__ import annotations

import pytest
import torch

from tacit.experiments.pointcloud import plots
from tacit.experiments.pointcloud.data.clouds import Clouds
from tacit.experiments.pointcloud.evaluate import load_model
from tacit.experiments.pointcloud.model import PointNet
from tacit.experiments.pointcloud.paper import PAPER
from tacit.experiments.pointcloud.plots import attention, curves, draw_attention, draw_gallery

pytest.importorskip("matplotlib")


def test_curves_with_and_without_the_papers(tmp_path):
    cells = {key: [value, value - 1] for key, value in PAPER["2"].items() if key[0] in ("max", "huber")}
    curves(cells, tmp_path / "a" / "one.png")
    curves(cells, tmp_path / "two.svg", PAPER["2"], "title")
    assert (tmp_path / "a" / "one.png").stat().st_size > 5000
    assert "<svg" in (tmp_path / "two.svg").read_text()


@pytest.mark.parametrize(("pooling", "share"), [("max", 0.5), ("quadratic", 1.0)])
def test_max_pooling_attends_to_few_points_and_the_mean_to_all(pooling, share):
    torch.manual_seed(0)
    model = PointNet(5, pooling)
    points = torch.randn(4000, 3)
    seen = attention(model, points, 2)
    assert seen.max() == 1
    assert ((seen > 0).float().mean() <= share) if pooling == "max" else bool((seen > 0).all())


def test_only_points_and_classes_that_exist_are_drawn(tmp_path, monkeypatch):
    """A class without a cloud in the test, and clouds of different sizes, filled up with points at the centre."""
    drawn = []
    monkeypatch.setattr(plots, "_grid", lambda panels, titles, *rest, **how: drawn.append((panels, titles)))
    clouds = Clouds(torch.rand(3, 9, 3) + 1, torch.tensor([0, 2, 2]), ("a", "b", "c"), torch.tensor([4, 9, 7]))
    draw_gallery(clouds, tmp_path / "x.png", shares=(0.0,))
    draw_attention({"quadratic": PointNet(3, "quadratic")}, clouds, tmp_path / "y.png", share=0.0)
    for panels, titles in drawn:
        assert titles == ["a", "c"]
        assert [len(cloud) for cloud, _ in panels[0]] == [4, 9]
        assert all((cloud >= 1).all() for cloud, _ in panels[0])


def test_gallery_and_attention_are_drawn(tmp_path, data, trained):
    draw_gallery(data[1], tmp_path / "gallery.png", shares=(0.0, 0.5), columns=3)
    model, _, _ = load_model(trained)
    draw_attention({"quadratic": model}, data[1], tmp_path / "attention.png", columns=2)
    for name in ("gallery.png", "attention.png"):
        assert (tmp_path / name).stat().st_size > 5000
