"""The network is ResNet-18: its size, its names, its shapes; the projection adds no parameter."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.errors import OptionError
from tacit.experiments.image.model import MODELS, ResNet18, build
from tacit.functions.norms import lp_norm

# Of the state dict as it is commonly distributed: names and shapes at the places where a slip would show.
PRETRAINED = {
    "conv1.weight": (64, 3, 7, 7),
    "bn1.running_mean": (64,),
    "layer1.0.conv1.weight": (64, 64, 3, 3),
    "layer1.1.bn2.bias": (64,),
    "layer2.0.conv1.weight": (128, 64, 3, 3),
    "layer2.0.downsample.0.weight": (128, 64, 1, 1),
    "layer2.0.downsample.1.running_var": (128,),
    "layer3.0.downsample.1.num_batches_tracked": (),
    "layer4.1.conv2.weight": (512, 512, 3, 3),
    "fc.weight": (1000, 512),
    "fc.bias": (1000,),
}


def test_a_pretrained_state_dict_has_these_names_and_shapes():
    state = build("plain", 1000).state_dict()
    assert len(state) == 122
    assert {name: tuple(state[name].shape) for name in PRETRAINED} == PRETRAINED
    assert not any("layer1.0.downsample" in name for name in state)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_as_many_parameters(name):
    assert sum(p.numel() for p in build(name, 1000, radius=15.0).parameters()) == 11_689_512


@pytest.mark.parametrize(("stem", "side"), [("imagenet", 2), ("medium", 4), ("small", 8)])
def test_stems_shrink_an_image_of_64_pixels_less_and_less(stem, side):
    model = ResNet18(5, stem, width=4)
    sizes = []
    model.layer4.register_forward_hook(lambda module, given, out: sizes.append(out.shape[-1]))
    assert model(torch.randn(2, 3, 64, 64)).shape == (2, 5)
    assert sizes == [side]


def test_an_image_of_one_pixel_passes():
    assert build("l2-ball", 5, radius=2.0, width=4).eval()(torch.zeros(1, 3, 1, 1)).isfinite().all()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "plain"])
def test_the_classifier_sees_features_within_the_radius(name):
    model = build(name, 5, radius=2.0, stem="small", width=4)
    seen = model.fc.features(model.features(torch.randn(16, 3, 16, 16, generator=torch.Generator().manual_seed(0))))
    size = lp_norm(seen, model.fc.p)
    assert (size <= 2.0 + 1e-5).all()
    if name.endswith("sphere"):
        torch.testing.assert_close(size, torch.full_like(size, 2.0))
    assert (math.inf if "inf" in name else float(name[1])) == model.fc.p


def test_a_plain_models_weights_load_into_a_projected_one():
    plain, projected = build("plain", 5, width=4), build("l2-ball", 5, radius=2.0, width=4)
    left = projected.load_state_dict(plain.state_dict(), strict=False)
    assert not left.unexpected_keys and all(key.startswith("fc.normalise.") for key in left.missing_keys)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(OptionError, match=r"'l2-bal'.*Did you mean 'l2-ball'"):
        build("l2-bal", 5, radius=1.0)
    with pytest.raises(OptionError, match="tacit image scale"):
        build("l2-ball", 5)
    with pytest.raises(OptionError, match="stem expects one of"):
        build("plain", 5, stem="smal")
