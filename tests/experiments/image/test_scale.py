"""The scale rule, on features whose norms are known. DDN[feature-projection]."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.errors import OptionError
from tacit.experiments.common.files import read_json
from tacit.experiments.image.config import Config, config_of
from tacit.experiments.image.scale import radii, scale
from tacit.experiments.image.train import train

TINY = Config(images=40, epochs=1, batch=20, width=2, device="cpu", workers=1, size=16)


def test_radii_are_two_thirds_of_the_median_norm_whatever_the_features_scale():
    features = torch.randn(4000, 512, generator=torch.Generator().manual_seed(0)) * 7 + 3
    found = radii(features)
    # Of normal features the expected norms are known; with 512 of them a norm varies by a few per cent at most.
    assert found["l1"] == pytest.approx(2 / 3 * 512 * math.sqrt(2 / math.pi), rel=0.01)
    assert found["l2"] == pytest.approx(2 / 3 * math.sqrt(512), rel=0.01)
    normal = (features - features.mean(0)) / features.std(0, correction=0)
    assert found["linf"] == pytest.approx(2 / 3 * normal.abs().amax(1).median().item(), rel=1e-4)


def test_most_features_are_projected_and_none_by_much():
    features = torch.randn(1000, 512, generator=torch.Generator().manual_seed(0))
    normal = torch.nn.functional.batch_norm(features, None, None, training=True)
    share = (normal.norm(dim=1) > radii(features)["l2"]).float().mean()
    assert share > 0.99


def test_the_radii_of_a_trained_plain_model_are_kept_in_its_folder(tmp_path):
    train(TINY, tmp_path, quiet=True)
    found = scale(config_of(tmp_path), tmp_path)
    assert found["images"] == 40 and found["features"] == 16
    assert read_json(tmp_path / "scale.json") == found
    assert 0 < found["radius"]["linf"] < found["radius"]["l2"] < found["radius"]["l1"]


def test_a_projected_model_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"expects a run of the plain model; .* holds 'l2-ball'"):
        scale(Config(model="l2-ball", radius=1.0), tmp_path)
