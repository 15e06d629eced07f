"""The defaults are the paper's protocol; values that cannot be meant are refused."""

from __future__ import annotations

import pytest

from tacit.errors import OptionError
from tacit.experiments.pointcloud.config import Config


def test_the_defaults_are_those_of_the_paper():
    config = Config()
    assert (config.lr, config.momentum, config.batch, config.epochs, config.points) == (0.01, 0.9, 24, 60, 2048)
    assert (config.decay, config.decay_every, config.alpha) == (0.5, 20, 1.0)
    assert config.shares == (0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, "epochs expects at least 1; received 0"),
        ({"lr": 0.0}, "lr expects a positive number"),
        ({"alpha": -1.0}, "alpha expects a positive number"),
        ({"outliers": 1.5}, "from 0 to 1; received 1.5"),
        ({"shares": (0.1, 10.0)}, "from 0 to 1; received 10.0"),
        ({"shares": ()}, "shares expects at least one value"),
        ({"batch": 1}, "batch expects at least 2; received 1"),
        ({"lr": float("inf")}, "lr expects a positive number; received inf"),
        ({"momentum": 1.0}, "momentum expects at least 0 and below 1"),
        ({"weight_decay": -1.0}, "weight_decay expects at least 0"),
        ({"dropout": 1.5}, "dropout expects at least 0 and below 1"),
        ({"decay": -0.5}, "decay expects above 0"),
        ({"jitter": float("nan")}, "jitter expects at least 0; received nan"),
        ({"clouds": -5}, "clouds expects at least 0"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(values, message):
    with pytest.raises(OptionError, match=message):
        Config(**values)
