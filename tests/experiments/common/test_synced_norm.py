"""Alone, batch normalisation over all processes is batch normalisation."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from tacit.experiments.common.synced_norm import SyncedBatchNorm1d


@pytest.fixture
def alone(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 5), (6, 4, 3, 2)])
@pytest.mark.parametrize("affine", [True, False])
def test_it_equals_torchs_in_value_gradient_and_running_statistics(alone, shape, affine):
    kind = torch.nn.BatchNorm2d if len(shape) == 4 else torch.nn.BatchNorm1d
    plain = kind(4, affine=affine).double()
    synced = SyncedBatchNorm1d.convert(kind(4, affine=affine).double())
    x = (5 + torch.randn(shape, dtype=torch.float64)).requires_grad_()
    for train in (True, True, False):
        results = []
        for module in (plain.train(train), synced.train(train)):
            y = module(x)
            wanted = [x, *module.parameters()]
            results.append([y, *torch.autograd.grad(y.square().sum() + y.sum(), wanted), *module.buffers()])
        for left, right in zip(*results):
            torch.testing.assert_close(left, right)


def test_conversion_keeps_the_parameters_themselves():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.BatchNorm1d(4)))
    before = [id(parameter) for parameter in model.parameters()]
    keys = list(model.state_dict())
    converted = SyncedBatchNorm1d.convert(model.eval())
    assert [id(parameter) for parameter in converted.parameters()] == before
    assert list(converted.state_dict()) == keys
    assert not any(module.training for module in converted.modules())
