"""A file is whole or not there."""

from __future__ import annotations

import os
import signal
import time

import pytest

from experiments.processes import Process
from tacit.experiments.common.errors import DataError, TrainingError
from tacit.experiments.common.files import alone_in, read_json, write_bytes, write_json


def test_what_is_written_is_read_and_folders_are_made(tmp_path):
    write_json(tmp_path / "a" / "b.json", {"x": [1, 2.5, "t"]})
    assert read_json(tmp_path / "a" / "b.json") == {"x": [1, 2.5, "t"]}


def test_what_is_no_json_is_named(tmp_path):
    (tmp_path / "result.json").write_text('{"a": ')
    with pytest.raises(DataError, match=r"result\.json is damaged"):
        read_json(tmp_path / "result.json")


def test_a_second_process_is_kept_out_until_the_first_ends_however_it_ends(tmp_path):
    """Locks are had by a process: the other has to be one."""
    holder = Process(hold, tmp_path)
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    with pytest.raises(TrainingError, match="Another process is training in"), alone_in(tmp_path):
        pytest.fail("let in")
    holder.kill()
    assert holder.end()[0] == -signal.SIGKILL
    with alone_in(tmp_path):
        pass


def hold(folder):
    with alone_in(folder):
        (folder / "held").touch()
        time.sleep(60)


def test_a_crash_before_the_move_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def crash(*names):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
