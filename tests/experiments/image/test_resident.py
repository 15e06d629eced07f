"""Crops taken on the device are those that Pillow takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.image.samples import class_folders
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import DataError
from tacit.experiments.common.seeds import generator
from tacit.experiments.image.crops import draws
from tacit.experiments.image.data import load
from tacit.experiments.image.feed import View
from tacit.experiments.image.procedural import procedural
from tacit.experiments.image.resident import ResidentFeed, crop, crop_plan
from tacit.experiments.image.streamed import StreamedFeed, crop_image

CPU = World(torch.device("cpu"))


@pytest.mark.parametrize("size", [32, 48])
def test_a_crop_that_grows_has_the_pixels_pillow_gives_it(size):
    images, drawn = procedural(64, "train"), draws(64, generator(0, "test"))
    pixels = torch.from_numpy(images.pixels).permute(0, 3, 1, 2)
    ours = crop(pixels, crop_plan(drawn, 32), size)
    pillows = np.stack([np.asarray(crop_image(images.image(i), drawn[i], size)) for i in range(64)])
    # Pillow rounds after each direction: half a level, twice.
    assert (ours - torch.from_numpy(pillows).permute(0, 3, 1, 2)).abs().max() <= 1.001


def test_a_crop_that_shrinks_is_the_same_but_for_antialiasing():
    smooth = torch.linspace(0, 255, 64)[None, None, None, :].expand(16, 3, 64, 64)
    drawn = draws(16, generator(0, "test"))
    ours = crop(smooth, crop_plan(drawn, 64, 0.9), 32)
    from PIL import Image

    image = Image.fromarray(smooth[0].permute(1, 2, 0).to(torch.uint8).numpy())
    pillows = np.stack([np.asarray(crop_image(image, row, 32, 0.9)) for row in drawn])
    inner = (ours - torch.from_numpy(pillows).permute(0, 3, 1, 2))[..., 1:-1]  # at the edge Pillow averages inwards
    assert inner.abs().max() < 2


@pytest.mark.parametrize("size", [32, 30])
def test_batches_are_those_of_images_decoded_as_needed(size):
    images, view = procedural(40, "train"), View(size, 32, 0.9 if size == 30 else 0.08)
    kept, streamed = (kind(images, CPU, view, batch=10, workers=0) for kind in (ResidentFeed, StreamedFeed))
    for one, other in zip(kept.validation(), streamed.validation()):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])
    if size == 32:
        for one, other in zip(kept.training(2, first=1), streamed.training(2, first=1)):
            assert torch.equal(one[1], other[1])
            assert (one[0] - other[0]).abs().max() < 1.001 / 255 / 0.224


def test_an_epoch_can_be_taken_up_in_its_middle():
    feed = ResidentFeed(procedural(40, "train"), CPU, View(32, 32), batch=10)
    whole, rest = list(feed.training(1)), list(feed.training(1, first=2))
    assert len(whole) == 4 and len(rest) == 2 and not list(feed.training(1, first=4))
    for one, other in zip(whole[2:], rest):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


def test_a_broken_image_is_named_or_left_out_and_counted(tmp_path):
    class_folders(tmp_path, {"cat": 4, "dog": 4})
    (tmp_path / "dog" / "2.png").write_bytes(b"no image")
    train, val = load(tmp_path, 0.0001 + 1 / 4)
    both = [train, val]
    broken = next(images for images in both if any("dog/2.png" in str(p) for p in _paths(images)))
    with pytest.raises(DataError, match=r"dog/2\.png: expected an image"):
        ResidentFeed(broken, CPU, View(16, 16))
    feed = ResidentFeed(broken, CPU, View(16, 16), batch=2, skip=True)
    assert len(feed) == len(broken) - 1 and len(feed.skipped) == 1 and "dog/2.png" in min(feed.skipped)
    assert sum(len(labels) for _, labels in feed.validation()) == len(feed)


def _paths(images):
    return [images.whole.paths[row] for row in images.rows]


def test_nothing_but_broken_images_is_an_error_all_the_same(tmp_path):
    for name in class_folders(tmp_path, {"cat": 2}).rglob("*.png"):
        name.write_bytes(b"")
    train, _ = load(tmp_path, 0.5)
    with pytest.raises(DataError, match="None of the 1 images could be decoded"):
        ResidentFeed(train, CPU, View(16, 16), skip=True)
