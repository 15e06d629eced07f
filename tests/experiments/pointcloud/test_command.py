"""`tacit pointcloud ...` from the words to the files."""

from __future__ import annotations

import pytest

from experiments.pointcloud.data import forms
from tacit.experiments.command import main
from tacit.experiments.common.files import read_json


@pytest.fixture
def source(tmp_path):
    return str(forms.write_npz(tmp_path / "data.npz"))


SMALL = ["--points", "8", "--epochs", "2", "--batch", "3", "--shares", "0,0.5", "--device", "cpu"]


def test_train_then_evaluate_shows_the_same_table(tmp_path, source, capsys):
    folder = str(tmp_path / "run")
    assert main(["pointcloud", "train", *SMALL, "--data", source, "--folder", folder, "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert main(["pointcloud", "evaluate", folder, "--data", source, "--shares", "0,0.5", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.strip() in shown
    assert "| 50%" in shown
    fewer = ["pointcloud", "evaluate", folder, "--data", source, "--points", "0", "--device", "cpu"]
    assert main(fewer) == 1 and "points expects at least 1; received 0" in capsys.readouterr().err


def test_a_second_training_in_the_same_folder_is_refused_and_resume_returns_the_result(tmp_path, source, capsys):
    words = ["pointcloud", "train", *SMALL, "--data", source, "--folder", str(tmp_path / "run"), "--quiet"]
    assert main(words) == 0
    assert main(words) == 1
    assert "CheckpointError" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0


def test_a_config_file_with_an_unknown_key_is_refused_with_the_nearest(tmp_path, capsys):
    (tmp_path / "run.toml").write_text("poling = 'max'")
    assert main(["pointcloud", "train", "--config", str(tmp_path / "run.toml")]) == 1
    assert "Did you mean 'pooling'?" in capsys.readouterr().err


def test_missing_data_end_the_command_with_a_sentence(capsys):
    assert main(["pointcloud", "train", "--data", "nowhere", "--quiet"]) == 1
    assert "tacit: DataError: The data nowhere do not exist." in capsys.readouterr().err


@pytest.mark.slow
def test_a_table_is_run_reported_and_plotted_and_not_run_twice(tmp_path, source, capfd):
    words = ["pointcloud", "table", "2", *SMALL, "--data", source, "--folder", str(tmp_path / "runs")]
    collected = tmp_path / "collected.json"
    assert main([*words, "--poolings", "max,quadratic", "--at-once", "2", "--collect", str(collected)]) == 0
    assert set(read_json(collected)) == {"max-0pc-seed0", "quadratic-0pc-seed0"}
    said = capfd.readouterr()
    assert "paper 50%" in said.out and "finished after" in said.err
    assert main([*words, "--poolings", "max,quadratic"]) == 0
    assert "started" not in capfd.readouterr().err
    assert main(["pointcloud", "plot", "--folder", str(tmp_path / "runs"), "--data", source]) == 0
    for name in ("table2.png", "gallery.png", "attention.png"):
        assert (tmp_path / "runs" / name).exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--poolings", "max,hubert"], "Did you mean 'huber'?"),
        (["--trained", "0.1,3"], "a number from 0 to 1; received '3'"),
        (["--at-once", "0"], "at least 1; received '0'"),
        (["--time-limit", "0"], "a positive number; received '0'"),
        (["--epoch", "3"], "no option --epoch. Did you mean '--epochs'?"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(capsys, words, message):
    with pytest.raises(SystemExit, match="2"):
        main(["pointcloud", "table", "2", *words])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value", "instead"), [("pooling", "max", "poolings"), ("outliers", "0", "trained")])
def test_a_table_says_where_its_options_belong(capsys, option, value, instead):
    assert main(["pointcloud", "table", "2", f"--{option}", value]) == 1
    assert f"table sets --{option} itself, run by run; use --{instead}" in capsys.readouterr().err


def test_a_model_is_not_tested_on_data_of_other_classes(tmp_path, trained, source, capsys):
    assert main(["pointcloud", "evaluate", str(trained), "--data", source, "--device", "cpu"]) == 1
    assert "the data have cube, stick (2)" in capsys.readouterr().err


def test_a_refused_training_leaves_what_the_folder_says(tmp_path, source):
    words = ["pointcloud", "train", *SMALL, "--data", source, "--folder", str(tmp_path), "--quiet"]
    assert main(words) == 0
    before = (tmp_path / "config.json").read_bytes()
    assert main([*words, "--lr", "0.5"]) == main([*words, "--lr", "0.5", "--resume"]) == 1
    assert (tmp_path / "config.json").read_bytes() == before


def test_a_plot_of_a_folder_that_is_not_there_makes_none(tmp_path, source, capsys):
    assert main(["pointcloud", "plot", "--folder", str(tmp_path / "typo"), "--data", source]) == 1
    assert "typo does not exist" in capsys.readouterr().err and not (tmp_path / "typo").exists()
