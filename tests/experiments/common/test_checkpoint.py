"""A damaged checkpoint is never loaded, and a crash leaves a whole one."""

from __future__ import annotations

import os
import random

import pytest
import torch

from tacit.experiments.common import checkpoint
from tacit.experiments.common.checkpoint import Checkpoints, read_checkpoint, write_checkpoint
from tacit.experiments.common.errors import CheckpointError

STATE = {"model": {"weight": torch.arange(6.0).reshape(2, 3)}, "epoch": 3, "names": ["loss"], "sums": None}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "last.pt"
    write_checkpoint(path, STATE)
    return path


def test_what_is_saved_is_loaded(written):
    state = read_checkpoint(written)
    assert torch.equal(state["model"]["weight"], STATE["model"]["weight"])
    assert {key: value for key, value in state.items() if key != "model"} == {
        "epoch": 3,
        "names": ["loss"],
        "sums": None,
    }


def flips(length: int, count: int) -> list[int]:
    """All of the header's 84 bytes, and others spread over the rest."""
    spread = random.Random(0).sample(range(84, length), count - 84)
    return [*range(84), *spread]


def test_a_file_with_any_of_284_bytes_flipped_is_never_loaded(written):
    content = written.read_bytes()
    for at in flips(len(content), 284):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        written.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            read_checkpoint(written)


def test_a_file_cut_at_any_of_20_lengths_is_never_loaded(written):
    content = written.read_bytes()
    for length in [0, 1, 18, 83, 84, *(len(content) * i // 15 for i in range(1, 15)), len(content) - 1]:
        written.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            read_checkpoint(written)


def test_code_in_a_file_is_not_run(tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    path = tmp_path / "evil.pt"
    write_checkpoint(path, {"x": Trap()})
    with pytest.raises(CheckpointError, match="more than tensors and plain values"):
        read_checkpoint(path)
    assert not (tmp_path / "sprung").exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"none\.pt cannot be read: No such file"):
        read_checkpoint(tmp_path / "none.pt")


def test_the_previous_checkpoint_stands_in_for_a_damaged_one(tmp_path):
    told = []
    checkpoints = Checkpoints(tmp_path, told.append)
    assert checkpoints.load() is None
    for epoch in range(3):
        checkpoints.save({"epoch": epoch})
    assert checkpoints.load() == {"epoch": 2}
    checkpoints.last.write_bytes(checkpoints.last.read_bytes()[:-1])
    assert checkpoints.load() == {"epoch": 1}
    assert "is damaged" in told[0]
    checkpoints.previous.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"last\.pt"):
        checkpoints.load()


@pytest.mark.parametrize("moves", [1, 2, 3])
def test_a_crash_at_any_move_of_a_save_leaves_a_whole_checkpoint(tmp_path, monkeypatch, moves):
    """A save moves three times: the new file to its name, last to previous, new to last."""
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save({"epoch": 0})
    checkpoints.save({"epoch": 1})
    replace, done = os.replace, []

    def crashing(*names):
        done.append(names)
        if len(done) == moves:
            raise SystemExit
        replace(*names)

    monkeypatch.setattr(checkpoint.os, "replace", crashing)
    with pytest.raises(SystemExit):
        checkpoints.save({"epoch": 2})
    monkeypatch.undo()
    assert Checkpoints(tmp_path).load() == {"epoch": 1}
    checkpoints.save({"epoch": 3})
    assert checkpoints.load() == {"epoch": 3}
