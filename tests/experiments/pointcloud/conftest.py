"""A training small enough for a test: two epochs on four dozen clouds of 32 points."""

from __future__ import annotations

import pytest
import torch

from tacit.experiments.common.distributed import World
from tacit.experiments.pointcloud.config import Config
from tacit.experiments.pointcloud.data.embedded import embedded
from tacit.experiments.pointcloud.train import train

SMALL = Config(pooling="quadratic", points=32, epochs=2, batch=8, shares=(0.0, 0.5), dropout=0.5, outliers=0.1)


@pytest.fixture(scope="package")
def small():
    return SMALL


@pytest.fixture(scope="package")
def data():
    return embedded(train=28, test=14, points=40)


@pytest.fixture(scope="package")
def alone():
    return World(torch.device("cpu"))


@pytest.fixture(scope="package")
def trained(tmp_path_factory, data, alone):
    """The folder of a finished training."""
    folder = tmp_path_factory.mktemp("pointcloud") / "quadratic"
    train(*data, SMALL, folder, alone, quiet=True)
    return folder
