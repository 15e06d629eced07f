"""The command `tacit` as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.errors import OptionError
from tacit.experiments import command
from tacit.experiments.common.errors import Interrupted


@pytest.mark.parametrize(
    ("raised", "code"), [(OptionError("no"), 1), (Interrupted("saved"), 130), (KeyboardInterrupt(), 130)]
)
def test_what_goes_wrong_is_one_sentence_and_a_code(monkeypatch, capsys, raised, code):
    def fail(arguments):
        raise raised

    monkeypatch.setattr(command.pointcloud, "_evaluate", fail)
    assert command.main(["pointcloud", "evaluate", "x"]) == code
    assert capsys.readouterr().err.count("\n") == 1


def test_every_command_has_help(capsys):
    for words in (["--help"], ["pointcloud", "train", "--help"], ["pointcloud", "table", "--help"]):
        with pytest.raises(SystemExit, match="0"):
            command.main(words)
    assert "--pooling" in capsys.readouterr().out


@pytest.mark.slow
def test_training_needs_torch_and_numpy_alone(tmp_path):
    absent = ["h5py", "jaxtyping", "matplotlib", "rich", "tensorboard", "torchmetrics", "yaml", "scipy"]
    words = [
        "pointcloud",
        "train",
        "--points",
        "8",
        "--epochs",
        "1",
        "--clouds",
        "28",
        "--shares",
        "0",
        "--batch",
        "14",
    ]
    script = f"import sys; sys.modules.update(dict.fromkeys({absent})); from tacit.experiments.command import main; "
    script += f"sys.exit(main({[*words, '--data', 'embedded', '--folder', str(tmp_path)]!r}))"
    source = str(Path(__file__).resolve().parents[2] / "src")
    run = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "result.json").exists()
