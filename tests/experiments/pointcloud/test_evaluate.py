"""A test of a saved model is the test of the training that saved it."""

from __future__ import annotations

import pytest
import torch

from tacit.experiments.common.checkpoint import write_checkpoint
from tacit.experiments.common.errors import CheckpointError
from tacit.experiments.common.files import read_json
from tacit.experiments.pointcloud.evaluate import load_model, scores_of, trials


def test_a_loaded_model_has_the_results_of_the_training(trained, data, alone):
    model, config, classes = load_model(trained)
    assert classes == data[0].classes
    assert trials(model, data[1], config, alone) == read_json(trained / "result.json")["rows"]


def test_scores_are_probabilities_and_the_model_is_left_as_it_was(trained, data, small, alone):
    model, _, _ = load_model(trained / "model.pt")
    model.train()
    scores = scores_of(model, data[1], small, alone, 0.1)
    assert model.training
    torch.testing.assert_close(scores.sum(1), torch.ones(14, dtype=torch.float64))


def test_a_checkpoint_of_a_training_under_way_is_not_taken_for_a_model(tmp_path):
    write_checkpoint(tmp_path / "last.pt", {"model": {}, "epoch": 1})
    with pytest.raises(CheckpointError, match=r"training under way.*model\.pt"):
        load_model(tmp_path / "last.pt")


def test_a_folder_whose_training_is_not_finished_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=rf"{tmp_path.name} holds no model\.pt.*finished"):
        load_model(tmp_path)
