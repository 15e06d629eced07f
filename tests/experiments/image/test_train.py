"""A training learns, continues to the same bits after an interruption, and reads every kind of data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from experiments.image import shared_gradient
from experiments.image.samples import packed
from experiments.processes import several
from tacit.errors import OptionError
from tacit.experiments.common.checkpoint import Checkpoints
from tacit.experiments.common.errors import CheckpointError, ConfigError
from tacit.experiments.common.files import read_json
from tacit.experiments.image import train as module
from tacit.experiments.image.config import Config
from tacit.experiments.image.train import evaluate, feed_of, image_sets, model_of, train

TINY = Config(images=60, epochs=2, batch=20, width=2, device="cpu", workers=1, size=16)


def weights(folder) -> dict[str, torch.Tensor]:
    return Checkpoints(folder).load()["model"]


def test_a_training_leaves_its_result_and_can_be_evaluated_again(tmp_path):
    result = train(TINY, tmp_path, quiet=True)
    assert read_json(tmp_path / "result.json")["top1"] == result["top1"]
    assert result["images"] == {"classes": 10, "train": 60, "val": 60} and result["skipped"] == []
    again = evaluate(TINY, tmp_path)
    assert all(
        again[key] == pytest.approx(result[key], abs=1e-12) for key in ("top1", "map", "map_scores", "ece", "nll")
    )


class _Killed(BaseException):
    """What no handler of the loop knows."""


def test_a_training_that_was_cut_off_continues_to_the_same_bits(tmp_path, monkeypatch):
    config = dataclasses.replace(TINY, model="l2-ball", radius=2.0, save_every=1)
    train(config, tmp_path / "whole", quiet=True)
    plain, taken = module.loss, []

    def dying(model, batch):
        taken.append(batch)
        if len(taken) == 5:
            raise _Killed
        return plain(model, batch)

    monkeypatch.setattr(module, "loss", dying)
    with pytest.raises(_Killed):
        train(config, tmp_path / "cut", quiet=True)
    monkeypatch.setattr(module, "loss", plain)
    train(config, tmp_path / "cut", resume=True, quiet=True)
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def test_a_folder_with_a_training_of_other_options_is_refused(tmp_path):
    result = train(TINY, tmp_path, quiet=True)
    with pytest.raises(ConfigError, match=r"is finished, under other options: lr was 0\.1 and is 0\.2"):
        train(dataclasses.replace(TINY, lr=0.2), tmp_path, resume=True, quiet=True)
    (tmp_path / "result.json").unlink()
    with pytest.raises(CheckpointError, match=r"lr was 0\.1 and is 0\.2"):
        train(dataclasses.replace(TINY, lr=0.2), tmp_path, resume=True, quiet=True)
    again = train(TINY, tmp_path, resume=True, quiet=True)
    assert again["reliability"] == result["reliability"]
    assert train(TINY, tmp_path, resume=True) == read_json(tmp_path / "result.json")


def test_a_training_does_not_go_on_with_other_images(tmp_path):
    train(dataclasses.replace(TINY, data=str(packed(tmp_path / "a.npz", [0, 1, 2] * 8, [0]))), tmp_path, quiet=True)
    other = dataclasses.replace(TINY, data=str(packed(tmp_path / "b.npz", [0, 1, 2] * 9, [0])))
    with pytest.raises(CheckpointError, match="training images was 24 and is 27"):
        (tmp_path / "result.json").unlink()
        train(other, tmp_path, resume=True, quiet=True)


def test_a_model_is_not_measured_on_images_of_other_classes(tmp_path):
    train(dataclasses.replace(TINY, data=str(packed(tmp_path / "a.npz", [0, 1, 2] * 8, [0]))), tmp_path, quiet=True)
    other = packed(tmp_path / "b.npz", [0, 1, 2] * 8, [0], wnids=np.array(["dog", "cat", "owl"]))
    with pytest.raises(CheckpointError, match="trained on other classes"):
        evaluate(dataclasses.replace(TINY, data=str(other)), tmp_path)


def test_the_seed_decides_the_weights_and_the_model_does_not():
    one, same, other = (model_of(dataclasses.replace(TINY, seed=s).filled(), 10) for s in (0, 0, 1))
    assert torch.equal(one.conv1.weight, same.conv1.weight) and not torch.equal(one.conv1.weight, other.conv1.weight)
    projected = model_of(dataclasses.replace(TINY, model="l1-ball", radius=9.0).filled(), 10)
    assert torch.equal(projected.fc.weight, one.fc.weight) and torch.equal(projected.conv1.weight, one.conv1.weight)


def test_image_files_are_decoded_in_memory_or_on_the_way(tmp_path):
    path = packed(tmp_path / "x.npz", [0, 1, 2] * 4, [0, 1])
    kinds = {}
    for feed in ("memory", "disk"):
        config = dataclasses.replace(TINY, data=str(path), feed=feed, images=0).filled()
        images, _ = image_sets(config)
        kinds[feed] = type(feed_of(images, config, module.World(torch.device("cpu")))).__name__
    assert kinds == {"memory": "ResidentFeed", "disk": "StreamedFeed"}


def test_weights_from_elsewhere_are_measured(tmp_path):
    config = TINY.filled()
    torch.save(model_of(config, 10).state_dict(), tmp_path / "weights.pt")
    assert evaluate(TINY, weights=tmp_path / "weights.pt")["top1"] <= 1
    with pytest.raises(CheckpointError, match=r"fc\.weight should be of shape \(5, 16\); it is \(10, 16\)"):
        evaluate(dataclasses.replace(TINY, classes=5), weights=tmp_path / "weights.pt")
    (tmp_path / "no.pt").write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match=r"no\.pt cannot be read as a state dict"):
        evaluate(TINY, weights=tmp_path / "no.pt")
    with pytest.raises(OptionError, match="received neither"):
        evaluate(TINY)
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        evaluate(TINY, tmp_path)


@pytest.mark.slow
def test_figures_are_learnt(tmp_path):
    result = train(Config(images=1000, epochs=6, width=8, device="cpu", lr=0.05), tmp_path, quiet=True)
    assert result["top1"] > 0.3  # a tenth by chance


def test_two_processes_have_the_gradients_statistics_and_scores_of_one(tmp_path):
    alone = shared_gradient.gradient()
    processes = several(2, shared_gradient.save, tmp_path)
    assert [process.end()[0] for process in processes] == [0, 0]
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        assert found.keys() == alone.keys() and "fc.normalise.running_var" in found
        for name, value in alone.items():
            exact = {"rtol": 1e-5, "atol": 1e-5} if name == "scores" else {"rtol": 1e-12, "atol": 1e-12}
            torch.testing.assert_close(found[name], value, **exact)
