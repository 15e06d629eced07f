"""Defaults are the paper's protocol; what follows from the data is filled in; a typo is named."""

from __future__ import annotations

import pytest

from tacit.errors import OptionError
from tacit.experiments.common.config import build, to_dict
from tacit.experiments.common.errors import ConfigError
from tacit.experiments.common.files import write_json
from tacit.experiments.image.config import Config, config_of, what_decides


def test_the_defaults_are_the_papers_protocol():
    config = Config(data="/imagenet", device="cpu").filled()
    protocol = {
        "size": 224,
        "resize": 256,
        "least_area": 0.08,
        "stem": "imagenet",
        "width": 64,
        "epochs": 90,
        "stage": 30,
        "batch": 256,
        "lr": 0.1,
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "amp": "off",
    }
    assert {key: getattr(config, key) for key in protocol} == protocol


def test_a_shorter_training_keeps_the_shape_of_the_schedule():
    assert [Config(epochs=n).filled().stage for n in (1, 2, 9, 10)] == [1, 1, 3, 4]


def test_what_is_said_is_kept():
    said = Config(size=48, resize=50, least_area=0.3, stem="small", width=8, stage=2, batch=32, amp="on", epochs=4)
    assert said.filled() == said


def test_a_typo_is_named():
    with pytest.raises(ConfigError, match=r"'epoch'.*Did you mean 'epochs'"):
        build(Config, overrides={"epoch": 3})
    with pytest.raises(ConfigError, match="model expects one of"):
        build(Config, overrides={"model": "l2"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, "epochs expects at least 1; received 0"),
        ({"batch": 1}, "batch expects 2 or more"),
        ({"lr": -1.0}, "lr expects a positive number"),
        ({"momentum": 1.0}, "momentum expects at least 0 and below 1"),
        ({"classes": -1}, "classes expects at least 0"),
        ({"size": -8}, "size expects at least 0"),
        ({"val_share": 1.0}, "val_share expects above 0 and below 1"),
        ({"radius": 0.0, "model": "l2-ball"}, "radius expects a positive number"),
        ({"radius": 3.0}, "radius expects a model that projects; received 3.0 for the plain one"),
        ({"timeout": 0.0}, "timeout expects a positive number"),
        ({"workers": -1}, "workers expects at least 0"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(values, message):
    with pytest.raises(OptionError, match=message):
        Config(**values)


def test_a_run_remembers_its_configuration(tmp_path):
    config = Config(model="l2-ball", epochs=3, radius=2.5).filled()
    write_json(tmp_path / "config.json", to_dict(config))
    assert config_of(tmp_path) == config
    assert config_of(tmp_path, {"data": "/elsewhere"}).data == "/elsewhere"
    with pytest.raises(OptionError, match=r"holds no config\.json"):
        config_of(tmp_path / "gone")


def test_how_a_training_is_carried_out_does_not_decide_its_result():
    one, other = what_decides(Config(workers=1, device="cpu")), what_decides(Config(workers=9, device="cuda"))
    assert one == other and one["lr"] == 0.1
