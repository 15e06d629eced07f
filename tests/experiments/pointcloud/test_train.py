"""A training leaves all that is needed to judge it, and continues from anywhere to the same bits."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tacit.experiments.common.checkpoint import read_checkpoint
from tacit.experiments.common.errors import CheckpointError, ConfigError
from tacit.experiments.common.files import read_json
from tacit.experiments.common.logs import read_log
from tacit.experiments.pointcloud import train as module
from tacit.experiments.pointcloud.train import train


def test_the_result_says_what_was_trained_and_how_well_it_did(trained, small):
    result = read_json(trained / "result.json")
    assert [row["share"] for row in result["rows"]] == [0.0, 0.5]
    assert all(0 <= row[metric] <= 1 for row in result["rows"] for metric in ("top1", "mAP"))
    assert result["config"]["pooling"] == "quadratic" and len(result["log"]) == 2
    assert {"command", "commit", "seed", "scale", "data", "versions", "device"} <= set(result["about"])
    assert set(read_log(trained)[0]) >= {"loss", "accuracy", "top1", "mAP"}


@pytest.mark.parametrize("pooling", ["max", "huber"])
def test_a_run_cut_in_the_middle_of_an_epoch_ends_with_the_same_weights(
    tmp_path, data, small, alone, monkeypatch, pooling
):
    config = replace(small, pooling=pooling, shares=(0.0,))
    train(*data, config, tmp_path / "whole", alone, quiet=True)
    loss, calls = module._loss, []

    def crash(model, batch):
        calls.append(batch)
        if len(calls) == 5:
            raise RuntimeError("power cut")
        return loss(model, batch)

    monkeypatch.setattr(module, "_loss", crash)
    with pytest.raises(RuntimeError, match="power cut"):
        train(*data, config, tmp_path / "cut", alone, quiet=True, save_every=2)
    monkeypatch.undo()
    train(*data, config, tmp_path / "cut", alone, quiet=True, resume=True)
    whole, cut = (read_checkpoint(tmp_path / name / "model.pt")["model"] for name in ("whole", "cut"))
    assert all(torch.equal(cut[name], value) for name, value in whole.items())


def test_a_finished_run_is_not_repeated_and_not_taken_for_another(trained, data, small, alone, monkeypatch):
    monkeypatch.setattr(module, "fit", lambda *args, **options: pytest.fail("trained again"))
    assert train(*data, small, trained, alone, resume=True) == read_json(trained / "result.json")
    with pytest.raises(ConfigError, match=r"other options: lr was 0\.01 and is 0\.5"):
        train(*data, replace(small, lr=0.5), trained, alone, resume=True)
    with pytest.raises(ConfigError, match=r"data was '28 clouds of .* and is '20 clouds of"):
        train(data[0].take(torch.arange(20)), data[1], small, trained, alone, resume=True)


def test_a_training_does_not_go_on_with_other_data(tmp_path, data, small, alone):
    train(*data, replace(small, epochs=1), tmp_path, alone, quiet=True)
    (tmp_path / "result.json").unlink()
    fewer = data[0].take(torch.arange(20))
    with pytest.raises(CheckpointError, match=r"data was '28 clouds of .* and is '20 clouds of"):
        train(fewer, data[1], replace(small, epochs=1), tmp_path, alone, quiet=True, resume=True)


@pytest.mark.slow
def test_max_pooling_learns_and_collapses_under_outliers_and_a_robust_pooling_holds(tmp_path, alone):
    """The paper's finding at the smallest scale, on shapes made here."""
    data = module_data()
    base = replace(module.Config(), points=128, epochs=8, decay_every=3, test_every=9, shares=(0.0, 0.2))
    top1 = {}
    for pooling in ("max", "truncated_quadratic"):
        rows = train(*data, replace(base, pooling=pooling), tmp_path / pooling, alone, quiet=True)["rows"]
        top1[pooling] = [row["top1"] for row in rows]
    kept = {pooling: spoilt / clean for pooling, (clean, spoilt) in top1.items()}
    assert top1["max"][0] > 0.75 and kept["max"] < 1 / 3
    assert top1["truncated_quadratic"][0] > 0.65 and kept["truncated_quadratic"] > 3 / 4


def module_data():
    from tacit.experiments.pointcloud.data.embedded import embedded

    return embedded(train=1560, test=520, points=256)
