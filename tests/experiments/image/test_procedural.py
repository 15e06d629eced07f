"""The drawn figures are the same every time, varied, and of ten classes."""

from __future__ import annotations

import numpy as np

from tacit.experiments.image.procedural import FIGURES, procedural


def test_the_same_images_every_time_and_others_to_validate_on():
    one, again, val = procedural(20, "train"), procedural(20, "train"), procedural(20, "val")
    assert (one.pixels == again.pixels).all() and not (one.pixels == val.pixels).all()


def test_more_images_begin_with_the_same():
    assert (procedural(30, "train").pixels[:20] == procedural(20, "train").pixels).all()


def test_classes_take_turns():
    images = procedural(25, "train", size=16)
    assert len(images.classes) == len(FIGURES) == 10
    assert images.labels.tolist() == [i % 10 for i in range(25)]
    assert images.pixels.shape == (25, 16, 16, 3) and images.pixels.dtype == np.uint8


def test_images_of_a_class_differ_as_much_as_those_of_two():
    images = procedural(200, "train")
    flat = images.pixels.reshape(200, -1).astype(float)
    apart = np.abs(flat[:, None, ::37] - flat[None, :, ::37]).mean(2)
    same = images.labels[:, None] == images.labels[None]
    np.fill_diagonal(same, False)
    assert 0.8 < apart[same].mean() / apart[~same].mean() < 1.2


def test_every_figure_covers_a_part_of_its_disc():
    y, x = np.meshgrid(np.linspace(-1, 1, 64), np.linspace(-1, 1, 64), indexing="ij")
    for name, figure in FIGURES.items():
        assert 0.1 < figure(x, y).mean() < 0.8, name
