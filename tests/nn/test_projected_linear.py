"""Features are normalised and projected before the classifier; a model of a user's gets the same. DDN[feature-projection]."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from tacit.errors import InputTypeError, InputValueError, OptionError, OptionTypeError
from tacit.functions.norms import lp_norm
from tacit.nn import ProjectedLinear, insert_projection

NORMS = (1, 2, 3, math.inf)


def features(n: int = 64, m: int = 12) -> torch.Tensor:
    return torch.randn(n, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3 + 1


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5)).double()


@pytest.mark.parametrize("p", NORMS)
def test_on_the_sphere_every_feature_vector_has_the_radius_for_norm(p):
    layer = ProjectedLinear(12, 5, p=p, radius=2.5, surface="sphere", dtype=torch.float64)
    norm = lp_norm(layer.features(features()), float(p))
    torch.testing.assert_close(norm, torch.full_like(norm, 2.5), rtol=1e-6, atol=0)


@pytest.mark.parametrize("p", NORMS)
def test_in_the_ball_only_long_feature_vectors_are_shortened(p):
    x = features()
    normal = torch.nn.functional.batch_norm(x, None, None, training=True)
    radius = float(lp_norm(normal, float(p)).median()) * 2 / 3
    layer = ProjectedLinear(12, 5, p=p, radius=radius, dtype=torch.float64)
    seen, before = layer.features(x), lp_norm(normal, float(p))
    assert (lp_norm(seen, float(p)) <= radius * (1 + 1e-6)).all()
    short = before <= radius
    assert 0 < short.sum() < len(x) / 2
    torch.testing.assert_close(seen[short], normal[short], rtol=0, atol=0)


def test_scores_are_the_linear_map_of_the_projected_features():
    layer = ProjectedLinear(12, 5, p=2, radius=1.5, dtype=torch.float64)
    x = features()
    normal = (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()
    by_hand = normal * (1.5 / normal.norm(dim=1, keepdim=True)).clamp_max(1)
    torch.testing.assert_close(layer(x), by_hand @ layer.weight.T + layer.bias)


def test_no_parameter_is_added_and_weights_keep_their_names():
    plain = network()
    projected = insert_projection(copy.deepcopy(plain), 2, 1.5)
    assert [name for name, _ in projected.named_parameters()] == [name for name, _ in plain.named_parameters()]
    left = projected.load_state_dict(plain.state_dict(), strict=False)
    assert not left.unexpected_keys and all(".normalise." in key for key in left.missing_keys)


def test_optimisers_made_before_the_insertion_still_move_the_model():
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    insert_projection(model, 2, 1.5)
    before = model[2].weight.detach().clone()
    model(features()).square().mean().backward()
    optimiser.step()
    assert not torch.equal(model[2].weight, before)


def test_in_evaluation_a_sample_does_not_depend_on_its_neighbours():
    model = insert_projection(network(), 2, 1.5)
    model(features())
    model.eval()
    x = features()
    torch.testing.assert_close(model(x)[:3], model(x[:3]))


def test_sequences_of_features_are_projected_one_by_one():
    layer = ProjectedLinear(12, 5, p=2, radius=1.5, surface="sphere", dtype=torch.float64)
    x = features().reshape(8, 8, 12)
    torch.testing.assert_close(layer(x), layer(features()).reshape(8, 8, 5))


def test_without_normalisation_the_features_are_projected_as_they_are():
    layer = ProjectedLinear(12, 5, p=2, radius=1e6, normalise=False, dtype=torch.float64)
    assert torch.equal(layer.features(features()), features())


@pytest.mark.parametrize("surface", ["ball", "sphere"])
@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_gradients_of_a_whole_model_equal_finite_differences(p, surface):
    model = insert_projection(network(), p, 1.5, surface=surface).eval()
    x = features(4).requires_grad_()
    assert torch.autograd.gradcheck(model, x)


def test_a_radius_that_is_a_parameter_is_learned():
    layer = ProjectedLinear(12, 5, p=2, radius=torch.nn.Parameter(torch.tensor(1.5)), surface="sphere")
    layer(features().float()).square().sum().backward()
    assert layer.radius.grad != 0
    assert "radius" in layer.state_dict()


def test_the_last_linear_layer_is_taken_unless_another_is_named():
    assert isinstance(insert_projection(network(), 2, 1.0)[2], ProjectedLinear)
    assert isinstance(insert_projection(network(), 2, 1.0, before="0")[0], ProjectedLinear)


def test_a_linear_layer_alone_is_replaced():
    layer = torch.nn.Linear(12, 5)
    assert insert_projection(layer, 2, 1.0).weight is layer.weight


def test_a_layer_used_in_two_places_is_replaced_in_both():
    shared = torch.nn.Linear(12, 12)
    model = insert_projection(torch.nn.Sequential(shared, torch.nn.ReLU(), shared), 2, 1.0)
    assert model[0] is model[2] and isinstance(model[0], ProjectedLinear)


def test_training_mode_is_kept():
    assert not insert_projection(network().eval(), 2, 1.0)[2].training


def test_half_precision_features_are_projected_in_full_precision():
    layer = ProjectedLinear(12, 5, p=2, radius=1.5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(features().float()).dtype == torch.bfloat16


@pytest.mark.untyped
def test_what_cannot_be_meant_is_refused():
    with pytest.raises(InputTypeError, match=r"torch\.nn\.Module; received int"):
        insert_projection(3, 2, 1.0)
    with pytest.raises(InputValueError, match="at least one"):
        insert_projection(torch.nn.ReLU(), 2, 1.0)
    with pytest.raises(OptionError, match=r"one of \['0', '2'\]; received '1'"):
        insert_projection(network(), 2, 1.0, before="1")
    with pytest.raises(InputValueError, match="a projection already, in '2'"):
        insert_projection(insert_projection(network(), 2, 1.0), 2, 1.0)
    with pytest.raises(OptionError, match="surface expects one of"):
        insert_projection(network(), 2, 1.0, surface="spere")
    with pytest.raises(OptionError, match="p expects"):
        insert_projection(network(), 0.5, 1.0)
    with pytest.raises(OptionError, match="radius expects a positive"):
        insert_projection(network(), 2, 0.0)
    with pytest.raises(OptionTypeError, match="p expects"):
        insert_projection(network(), "2", 1.0)


def test_a_layer_with_hooks_is_refused_rather_than_stripped_of_them():
    model = network()
    model[2].register_forward_hook(lambda *_: None)
    with pytest.raises(InputValueError, match="forward hooks"):
        insert_projection(model, 2, 1.0)


def test_the_projection_inside_attention_is_never_mistaken_for_the_classifier():
    attention = torch.nn.MultiheadAttention(8, 2)
    with pytest.raises(InputValueError, match="at least one"):
        insert_projection(attention, 2, 1.0)
