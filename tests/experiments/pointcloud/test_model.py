"""PointNet: its size, its indifference to order, and to points that are not there."""

from __future__ import annotations

import pytest
import torch

from tacit.experiments.pointcloud.config import POOLINGS
from tacit.experiments.pointcloud.model import MaxPool, PointNet, pooling_of


@pytest.fixture
def points():
    return torch.randn(3, 12, 3, generator=torch.Generator().manual_seed(0))


def model_of(pooling):
    torch.manual_seed(0)
    return PointNet(5, pooling, dropout=0.0)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling_has_the_0_8_million_parameters_of_max(pooling):
    counts = [sum(parameter.numel() for parameter in PointNet(40, name).parameters()) for name in (pooling, "max")]
    assert counts[0] == counts[1] == 819624


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_order_of_the_points_does_not_matter(points, pooling):
    model = model_of(pooling).eval()
    shuffled = points[:, torch.randperm(12, generator=torch.Generator().manual_seed(1))]
    torch.testing.assert_close(model(shuffled), model(points), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("train", [True, False])
def test_points_that_are_masked_do_not_exist_for_normalisation_pooling_and_gradient(points, pooling, train):
    """In double precision: the classifier normalises over three clouds, which makes gradients of tens out of float32's noise."""
    points = points.double()
    mask = torch.ones(3, 12, dtype=torch.bool)
    mask[:, 8:] = False
    results = []
    for x, m in ((points[:, :8], None), (points.masked_fill(~mask[..., None], torch.nan), mask)):
        model = model_of(pooling).double().train(train)
        leaf = x.clone().requires_grad_()
        y = model(leaf, m)
        (gradient,) = torch.autograd.grad(y.square().sum(), leaf)
        results.append((y, gradient[:, :8], model.state_dict()["features.4.1.running_var"]))
        assert m is None or not gradient[:, 8:].any()
    for left, right in zip(*results):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-12)


def test_pooling_is_the_only_difference_in_the_function(points):
    model, other = model_of("quadratic").eval(), model_of("max").eval()
    other.load_state_dict(model.state_dict())
    features = model.features(points.transpose(1, 2))
    torch.testing.assert_close(model(points), model.classifier(features.mean(-1)))
    torch.testing.assert_close(other(points), model.classifier(features.amax(-1)))


def test_max_pooling_and_a_huge_scale_of_huber_are_max_and_mean():
    x = torch.randn(2, 4, 9)
    assert torch.equal(MaxPool()(x), x.amax(-1))
    torch.testing.assert_close(pooling_of("huber", 1e3)(x), x.mean(-1))
