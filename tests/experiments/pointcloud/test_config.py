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
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(values, message):
    with pytest.raises(OptionError, match=message):
        Config(**values)
