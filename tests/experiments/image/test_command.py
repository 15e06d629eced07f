"""The commands, from words to files."""

from __future__ import annotations

import argparse
import json

import pytest

from tacit.errors import OptionError
from tacit.experiments.image import command

WORDS = ["--images", "40", "--epochs", "1", "--batch", "20", "--width", "2", "--size", "16", "--device", "cpu"]


def run(*words: str) -> None:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    arguments = parser.parse_args(["image", *words])
    arguments.run(arguments)


def test_train_then_evaluate_then_scale(tmp_path, capsys):
    folder = str(tmp_path / "plain")
    run("train", *WORDS, "--folder", folder, "--quiet")
    trained = capsys.readouterr().out
    assert "mAP of scores" in trained
    run("evaluate", "--folder", folder)
    assert capsys.readouterr().out == trained
    run("scale", "--folder", folder)
    assert set(json.loads(capsys.readouterr().out)["radius"]) == {"l1", "l2", "linf"}


def test_a_configuration_file_overrides_what_the_run_had(tmp_path, capsys):
    folder = str(tmp_path / "plain")
    run("train", *WORDS, "--folder", folder, "--quiet")
    (tmp_path / "more.toml").write_text("images = 20\n")
    capsys.readouterr()
    run("scale", "--folder", folder, "--config", str(tmp_path / "more.toml"))
    assert json.loads(capsys.readouterr().out)["images"] == 20


def test_a_table_says_where_its_options_belong(tmp_path):
    with pytest.raises(OptionError, match=r"table sets --seed itself.*--seeds"):
        run("table", "--seed", "3", "--folder", str(tmp_path))


def test_a_table_of_nothing_is_no_error(tmp_path, capsys):
    run("table", "--no-run", "--folder", str(tmp_path))
    assert capsys.readouterr().out == ""
