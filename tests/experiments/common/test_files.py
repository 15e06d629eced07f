"""A file is whole or not there."""

from __future__ import annotations

import os

import pytest

from tacit.experiments.common.files import read_json, write_bytes, write_json


def test_what_is_written_is_read_and_folders_are_made(tmp_path):
    write_json(tmp_path / "a" / "b.json", {"x": [1, 2.5, "t"]})
    assert read_json(tmp_path / "a" / "b.json") == {"x": [1, 2.5, "t"]}


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
