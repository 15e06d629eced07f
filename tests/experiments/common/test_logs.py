"""A log holds one row an epoch, also after a crash."""

from __future__ import annotations

import pytest

from tacit.experiments.common.logs import Log, read_log


def test_rows_are_read_back_and_a_resumed_run_drops_those_it_does_again(tmp_path):
    assert read_log(tmp_path) == []
    log = Log(tmp_path)
    for epoch in range(4):
        log.row({"epoch": epoch, "loss": 0.1 + epoch})
    log = Log(tmp_path, epoch=2)
    log.row({"epoch": 2, "loss": 9.0})
    assert read_log(tmp_path) == [{"epoch": e, "loss": loss} for e, loss in ((0, 0.1), (1, 1.1), (2, 9.0))]


def test_a_row_cut_short_is_left_out(tmp_path):
    Log(tmp_path).row({"epoch": 0, "loss": 1.5})
    with open(tmp_path / "log.csv", "a") as file:
        file.write("1,0.")
    assert read_log(tmp_path) == [{"epoch": 0, "loss": 1.5}]


@pytest.mark.filterwarnings("ignore")  # tensorboard's own imports
def test_tensorboard_gets_the_same_rows(tmp_path):
    pytest.importorskip("tensorboard")
    Log(tmp_path, tensorboard=True).row({"epoch": 0, "loss": 1.5})
    assert list((tmp_path / "tensorboard").iterdir())
