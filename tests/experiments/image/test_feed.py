"""The plan of an epoch: every image once, the same plan for any number of processes."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import OptionError
from tacit.experiments.common.distributed import World
from tacit.experiments.image.feed import View, normalised
from tacit.experiments.image.procedural import procedural
from tacit.experiments.image.resident import ResidentFeed

CPU = torch.device("cpu")


def feed(world: World | None = None, **options) -> ResidentFeed:
    return ResidentFeed(procedural(50, "train", 8), world or World(CPU), View(8, 8), **{"batch": 15, **options})


def test_an_epoch_takes_no_image_twice_and_leaves_less_than_a_batch():
    planned = feed()
    order = planned.order(3)
    rows = torch.cat([planned.rows(order, step) for step in range(planned.steps)])
    assert planned.steps == 3 and len(rows) == 45 == len(rows.unique())


def test_epochs_and_seeds_differ_and_repeat():
    assert torch.equal(feed().order(1), feed().order(1))
    assert not torch.equal(feed().order(1), feed().order(2))
    assert not torch.equal(feed().order(1), feed(seed=1).order(1))
    assert not torch.equal(feed().drawn(1, 0), feed().drawn(1, 1))


def test_three_processes_see_together_what_one_sees():
    alone, three = feed(), [feed(World(CPU, rank, 3)) for rank in range(3)]
    assert torch.equal(torch.cat([one.drawn(0, 1) for one in three]), alone.drawn(0, 1))
    for (images, labels), *parts in zip(alone.training(0), *(one.training(0) for one in three)):
        assert torch.equal(torch.cat([part[1] for part in parts]), labels)
        torch.testing.assert_close(torch.cat([part[0] for part in parts]), images)
    assert torch.equal(
        torch.cat([labels for one in three for _, labels in one.validation()]),
        torch.cat([labels for _, labels in alone.validation()]),
    )


def test_a_view_that_cannot_be_meant_is_refused():
    with pytest.raises(OptionError, match="size expects 1 to 8 pixels"):
        View(9, 8)
    with pytest.raises(OptionError, match="share above 0"):
        View(8, 8, 0.0)


@pytest.mark.parametrize("batch", [0, 1, 51])
def test_a_batch_that_no_epoch_fills_is_refused(batch):
    with pytest.raises(OptionError, match=f"as many images as there are, 50; received {batch}"):
        _ = feed(batch=batch).steps


def test_a_batch_that_processes_cannot_share_equally_is_refused():
    """Their gradients are averaged process by process: an image in a smaller share would weigh more."""
    with pytest.raises(OptionError, match="batch of 16 cannot be shared equally by 3"):
        _ = feed(World(CPU, 0, 3), batch=16).steps


def test_normalised_images_have_the_usual_mean_and_scale():
    grey = torch.full((1, 3, 2, 2), 255.0)
    expected = (1 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    torch.testing.assert_close(normalised(grey)[0, :, 0, 0], expected)
    assert normalised(grey.to(torch.uint8)).is_contiguous(memory_format=torch.channels_last)
