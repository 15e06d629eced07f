"""The measures, where they are known and against a plain computation."""

from __future__ import annotations

import pytest
import torch

from tacit.experiments.common.distributed import World
from tacit.experiments.image.evaluate import measure, scores_of
from tacit.experiments.image.feed import View
from tacit.experiments.image.procedural import procedural
from tacit.experiments.image.resident import ResidentFeed


def test_right_and_certain_is_perfect():
    labels = torch.arange(7).repeat(3)
    found = measure(50 * torch.nn.functional.one_hot(labels).float(), labels)
    assert {key: found[key] for key in ("top1", "top5", "map", "map_scores")} == pytest.approx(
        {"top1": 1, "top5": 1, "map": 1, "map_scores": 1}
    )
    assert found["ece"] == pytest.approx(0, abs=1e-9) and found["nll"] == pytest.approx(0, abs=1e-9)


def test_a_common_shift_of_an_images_scores_matters_to_one_of_the_two_precisions_alone():
    made = torch.Generator().manual_seed(0)
    labels = torch.randint(5, (400,), generator=made)
    scores = torch.randn(400, 5, generator=made) + torch.nn.functional.one_hot(labels, 5)
    shifted = scores + 10 * torch.randn(400, 1, generator=made)
    plain, other = measure(scores, labels), measure(shifted, labels)
    assert other["map"] == pytest.approx(plain["map"], abs=1e-4)
    assert other["map_scores"] < plain["map_scores"] - 0.1


def test_likelihood_equals_torchs():
    made = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(50, 5, generator=made), torch.randint(5, (50,), generator=made)
    assert measure(scores, labels)["nll"] == pytest.approx(torch.nn.functional.cross_entropy(scores, labels).item())


def test_scores_come_in_the_order_of_the_images_and_in_evaluation_mode():
    images = procedural(10, "val", 8)
    feed = ResidentFeed(images, World(torch.device("cpu")), View(8, 8), batch=4)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(192), torch.nn.Linear(192, 10))
    scores, labels = scores_of(model.train(), feed)
    assert not model.training and labels.tolist() == images.labels.tolist()
    whole = torch.cat([shown for shown, _ in feed.validation()])
    torch.testing.assert_close(scores, model(whole).detach())
