"""A configuration says what is wrong with it, whichever way it comes."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

import pytest

from tacit.errors import OptionError
from tacit.experiments.common.config import (
    add_arguments,
    build,
    check,
    differences,
    from_arguments,
    option,
    to_dict,
    words_of,
)
from tacit.experiments.common.errors import ConfigError


@dataclass(frozen=True)
class Config:
    epochs: int = option(60, "passes over the training set")
    rate: float = option(0.01, "at 100 % of the start")
    pooling: str = option("max", "what is pooled", choices=("max", "huber"))
    shares: tuple[float, ...] = option((0.0, 0.5), "of outliers")
    clip: float | None = option(None, "largest gradient")
    amp: bool = option(False, "mixed precision")


def parse(*words: str) -> Config:
    parser = argparse.ArgumentParser()
    add_arguments(parser, Config)
    return from_arguments(Config, parser.parse_args(words))


def test_the_command_line_is_over_the_file_and_the_file_over_the_defaults(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('epochs = 5\nrate = 1\nshares = [0, 0.9]\npooling = "huber"\n')
    config = parse("--config", str(path), "--epochs", "7", "--amp", "--clip", "2")
    assert config == Config(epochs=7, rate=1.0, pooling="huber", shares=(0.0, 0.9), clip=2.0, amp=True)
    assert isinstance(config.rate, float)
    assert parse("--shares", "0.1,0.2", "--no-amp", "--clip", "none") == Config(shares=(0.1, 0.2))


def test_yaml_is_read_too(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("epochs: 5\namp: true\n")
    assert build(Config, path) == Config(epochs=5, amp=True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "epoch = 5", "'epoch'.*Did you mean 'epochs'"),
        ("a.toml", "epochs = 5.5", "epochs expects a whole number; received 5.5"),
        ("a.toml", "epochs = true", "epochs expects a whole number; received True"),
        ("a.toml", "amp = 1", "amp expects true or false"),
        ("a.toml", "pooling = 'hubert'", "one of max, huber; received 'hubert'. Did you mean 'huber'"),
        ("a.toml", "shares = ['x']", "shares expects"),
        ("a.toml", "epochs =", "is not TOML"),
        ("a.yaml", "- 1", "should hold keys and values"),
        ("a.yaml", "a: [", "is not YAML"),
        ("a.ini", "", "should end in .toml"),
    ],
)
def test_a_bad_file_is_refused_by_name_with_what_was_expected(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        build(Config, path)
    assert name in str(caught.value)


def test_a_missing_file_and_an_unreadable_option_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        build(Config, tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="the command line: epochs expects a whole number; received 'many'"):
        parse("--epochs", "many")


@dataclass(frozen=True)
class Limited:
    epochs: int = option(1, "whole", least=1)
    rate: float = option(0.1, "open", above=0)
    shares: tuple[float, ...] = option((0.5,), "both", least=0, most=1)
    clip: float | None = option(None, "perhaps", least=0, below=1)
    free: float = option(0.0, "any")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, "epochs expects at least 1; received 0"),
        ({"rate": 0.0}, "rate expects a positive number; received 0.0"),
        ({"shares": (0.5, 1.5)}, "shares expects a number from 0 to 1; received 1.5"),
        ({"shares": ()}, "shares expects at least one value"),
        ({"clip": 1.0}, "clip expects at least 0 and below 1; received 1.0"),
        ({"free": float("nan")}, "free expects a finite number; received nan"),
    ],
)
def test_numbers_beyond_their_limits_are_refused(values, message):
    check(Limited())
    with pytest.raises(OptionError, match=message):
        check(Limited(**values))


def test_a_configuration_survives_json_and_differences_are_named():
    config = Config(clip=1.0)
    assert build(Config, overrides=json.loads(json.dumps(to_dict(config)))) == config
    assert differences(to_dict(config), to_dict(config)) == ""
    assert differences({"a": 1}, {"a": 2, "b": 3}) == "a was 1 and is 2; b was None and is 3"


def test_words_make_the_configuration_again_but_for_what_is_left_out():
    config = Config(epochs=9, rate=0.2, pooling="huber", shares=(0.1, 0.2), clip=2.0, amp=True)
    words = words_of(config)
    assert words == [
        "--epochs",
        "9",
        "--rate",
        "0.2",
        "--pooling",
        "huber",
        "--shares",
        "0.1,0.2",
        "--clip",
        "2.0",
        "--amp",
    ]
    assert parse(*words) == config
    assert words_of(config, without=("rate", "pooling", "shares", "clip")) == ["--epochs", "9", "--amp"]
    assert words_of(Config()) == []
