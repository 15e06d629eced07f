"""Images decoded by workers: the same ones however many there are."""

from __future__ import annotations

import pytest
import torch

from experiments.image.samples import class_folders
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import DataError
from tacit.experiments.image.data import load, some
from tacit.experiments.image.feed import View
from tacit.experiments.image.procedural import procedural
from tacit.experiments.image.streamed import StreamedFeed

CPU = World(torch.device("cpu"))


def test_workers_change_nothing():
    alone, two = (StreamedFeed(procedural(24, "train"), CPU, View(16, 16), batch=8, workers=n) for n in (0, 2))
    for one, other in zip(alone.training(0), two.training(0), strict=True):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


def test_an_epoch_can_be_taken_up_in_its_middle():
    feed = StreamedFeed(procedural(24, "train"), CPU, View(16, 16), batch=8, workers=0)
    whole, rest = list(feed.training(1)), list(feed.training(1, first=2))
    assert torch.equal(whole[2][0], rest[0][0]) and len(rest) == 1 and not list(feed.training(1, first=3))


@pytest.fixture
def broken(tmp_path):
    """Eight images, the third of them broken."""
    class_folders(tmp_path / "train", {"cat": 4, "dog": 4})
    class_folders(tmp_path / "val", {"cat": 1, "dog": 1})
    (tmp_path / "train" / "cat" / "2.png").write_bytes(b"no image")
    return load(tmp_path)[0]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_is_named(broken, workers):
    with pytest.raises(DataError, match=r"cat/2\.png: expected an image"):
        list(StreamedFeed(broken, CPU, View(16, 16), batch=4, workers=workers).validation())


def test_a_broken_image_is_left_out_and_counted(broken):
    feed = StreamedFeed(broken, CPU, View(16, 16), batch=4, workers=0, skip=True)
    for _ in range(2):
        assert sum(len(labels) for _, labels in feed.validation()) == 7
        assert sum(len(labels) for _, labels in feed.training(0)) == 7
    assert len(feed.skipped) == 1 and "cat/2.png" in min(feed.skipped)


def test_a_batch_of_nothing_but_broken_images_is_an_error_all_the_same(broken):
    feed = StreamedFeed(some(broken, broken.labels[:1] + 2), CPU, View(16, 16), workers=0, skip=True)
    with pytest.raises(DataError, match="Not one image of a batch could be decoded"):
        list(feed.validation())
