"""A training that was cut off ends where it would have ended, to the bit."""

from __future__ import annotations

import random
import signal
import threading
import time

import pytest
import torch

from experiments.common import toy
from tacit.experiments.common import checkpoint
from tacit.experiments.common.checkpoint import Checkpoints
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import CheckpointError, Interrupted, TrainingError
from tacit.experiments.common.logs import read_log
from tacit.experiments.common.loop import fit

ALONE = World(torch.device("cpu"))


def end_of(folder):
    """All that a training leaves but the time it took."""
    state = Checkpoints(folder).load()
    return {key: value for key, value in state.items() if key != "seconds"}


def assert_same(left, right):
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, torch.Tensor):
        assert torch.equal(left, right)
    else:
        assert left == right


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    toy.train(folder)
    return folder


def test_a_training_learns_and_logs_a_row_an_epoch(whole):
    rows = read_log(whole)
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert [row["lr"] for row in rows] == [0.1, 0.1, 0.05]
    assert rows[-1]["loss"] < rows[0]["loss"] and rows[-1]["test"] > 0.7
    assert set(rows[0]) == {"epoch", "lr", "loss", "accuracy", "test", "seconds"}


@pytest.mark.parametrize("save_every", [0, 1, 4])
def test_a_run_stopped_anywhere_continues_to_the_same_bits(whole, tmp_path, save_every):
    class Crash(Exception):
        pass

    stops = iter([(0, 2), (1, 0), (1, 5), (2, 3)])
    pending = next(stops)

    def crash(epoch, step):
        if (epoch, step) == pending:
            raise Crash

    while True:
        task = toy.task_of(ALONE, each=crash)
        try:
            fit(task, tmp_path, world=ALONE, resume=True, save_every=save_every, quiet=True)
            break
        except Crash:
            pending = next(stops, None)
    assert pending is None
    assert_same(end_of(tmp_path), end_of(whole))
    strip = [{key: value for key, value in row.items() if key != "seconds"} for row in read_log(tmp_path)]
    assert strip == [{key: value for key, value in row.items() if key != "seconds"} for row in read_log(whole)]


def test_a_finished_run_resumed_trains_no_further(whole, tmp_path):
    toy.train(tmp_path)
    before = Checkpoints(tmp_path).last.read_bytes()
    toy.train(tmp_path, resume=True)
    assert Checkpoints(tmp_path).last.read_bytes() == before
    assert_same(end_of(tmp_path), end_of(whole))


def test_the_callers_random_numbers_are_left_alone(tmp_path):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    toy.train(tmp_path, epochs=1)
    assert torch.equal(torch.rand(3), expected)


def test_ctrl_c_saves_says_how_to_go_on_and_the_run_ends_the_same(whole, tmp_path):
    def press(epoch, step):
        if (epoch, step) == (1, 2):
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match=r"after step 3 of epoch 2.*last\.pt.*--resume"):
        fit(toy.task_of(ALONE, each=press), tmp_path, world=ALONE, quiet=True)
    assert signal.getsignal(signal.SIGINT) is before
    toy.train(tmp_path, resume=True)
    assert_same(end_of(tmp_path), end_of(whole))


def test_a_folder_in_use_and_other_options_are_refused(whole):
    task = toy.task_of(ALONE)
    with pytest.raises(CheckpointError, match=r"3 epochs of it done.*--resume"):
        fit(task, whole, world=ALONE, quiet=True)
    with pytest.raises(CheckpointError, match=r"other options: lr was None and is 0.5"):
        fit(task, whole, world=ALONE, quiet=True, resume=True, config={"lr": 0.5})


def test_a_loss_that_is_not_finite_ends_the_training_with_advice(tmp_path):
    task = toy.task_of(ALONE)
    with torch.no_grad():
        task.model[0].weight.fill_(torch.nan)
    with pytest.raises(TrainingError, match=r"not finite in epoch 1.*learning rate"):
        fit(task, tmp_path, world=ALONE, quiet=True)


def test_mixed_precision_trains(tmp_path):
    toy.train(tmp_path, amp=True)
    rows = read_log(tmp_path)
    assert rows[-1]["loss"] < rows[0]["loss"]


@pytest.mark.compile
@pytest.mark.slow
def test_a_compiled_model_saves_under_the_same_names(whole, tmp_path):
    toy.train(tmp_path, compile=True)
    assert end_of(tmp_path)["model"].keys() == end_of(whole)["model"].keys()


def killed_and_resumed(folder, delays, **options):
    """Start the toy again and again, and kill it after each delay; then let it end."""
    kills = 0
    for delay in delays:
        (process,) = toy.start(folder, resume=True, save_every=1, **options)
        time.sleep(delay)
        process.kill()
        kills += process.end()[0] == -signal.SIGKILL
    (process,) = toy.start(folder, resume=True, **options)
    code, said = process.end()
    assert code == 0, said
    return kills


def test_a_killed_process_continues_to_the_same_bits(whole, tmp_path):
    (process,) = toy.start(tmp_path, die=[0, 1, 3], save_every=2)
    assert process.end()[0] == -signal.SIGKILL
    assert Checkpoints(tmp_path).load()["step"] == 2
    toy.train(tmp_path, resume=True)
    assert_same(end_of(tmp_path), end_of(whole))


def test_ctrl_c_in_the_last_test_of_a_training_is_not_forgotten(tmp_path):
    task = toy.task_of(ALONE, epochs=1)
    test = task.evaluate

    def press(model):
        signal.raise_signal(signal.SIGINT)
        return test(model)

    task.evaluate = press
    with pytest.raises(Interrupted, match="after epoch 1 of 1 as asked"):
        fit(task, tmp_path, world=ALONE, quiet=True)
    assert Checkpoints(tmp_path).load()["epoch"] == 1


def test_numbers_that_are_not_finite_never_take_the_place_of_a_checkpoint(tmp_path):
    task = toy.task_of(ALONE)
    loss, steps = task.loss, []

    def diverging(model, batch):
        steps.append(batch)
        value, values = loss(model, batch)
        return value * (float("nan") if len(steps) > 8 else 1), values

    task.loss = diverging
    with pytest.raises(TrainingError, match="not finite in epoch 2, at or before step 3"):
        fit(task, tmp_path, world=ALONE, save_every=1, quiet=True)
    state = Checkpoints(tmp_path).load()
    assert (state["epoch"], state["step"]) == (1, 2)
    assert all(value.isfinite().all() for value in state["model"].values())


def test_a_damaged_checkpoint_is_spoken_of_also_where_all_else_is_quiet(whole, tmp_path, capsys):
    toy.train(tmp_path)
    (tmp_path / "last.pt").write_bytes(b"")
    toy.train(tmp_path, resume=True)
    assert "Trying the one before" in capsys.readouterr().err
    assert_same(end_of(tmp_path), end_of(whole))


@pytest.mark.slow
def test_fifteen_kills_at_random_moments_change_no_bit(tmp_path):
    """Each life is long enough to load torch and take some steps; the epochs outlast all of them."""
    options = {"epochs": 60, "slow": 0.05}
    (process,) = toy.start(tmp_path / "whole", epochs=60)
    assert process.end()[0] == 0
    (process,) = toy.start(tmp_path / "timed", epochs=0)
    began = time.monotonic()
    process.end()
    start_up = time.monotonic() - began
    draw = random.Random(0)
    delays = [1.2 * start_up + draw.uniform(0, 1.0) for _ in range(15)]
    assert killed_and_resumed(tmp_path / "cut", delays, **options) == 15
    assert_same(end_of(tmp_path / "cut"), end_of(tmp_path / "whole"))


@pytest.mark.parametrize("moment", range(5))
def test_a_crash_during_a_save_changes_no_bit(whole, tmp_path, monkeypatch, moment):
    """The quick twin of the test below: an exception in the place of the kill."""
    monkeypatch.setattr(checkpoint, "write_bytes", checkpoint.write_bytes)  # to be put back, whatever comes
    monkeypatch.setattr(checkpoint.os, "replace", checkpoint.os.replace)

    def crash():
        raise SystemExit

    toy.cut_save(2, moment, crash)
    with pytest.raises(SystemExit):
        toy.train(tmp_path)
    monkeypatch.undo()
    assert (tmp_path / "last.pt").exists() == (moment != 2)
    toy.train(tmp_path, resume=True)
    assert_same(end_of(tmp_path), end_of(whole))


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(5))
def test_a_kill_during_a_save_changes_no_bit(whole, tmp_path, moment):
    (process,) = toy.start(tmp_path, cut=[2, moment])
    assert process.end()[0] == -signal.SIGKILL
    toy.train(tmp_path, resume=True)
    assert_same(end_of(tmp_path), end_of(whole))


def test_a_thread_may_train_where_no_signal_can_be_caught(tmp_path):
    thread = threading.Thread(target=toy.train, args=(tmp_path,), kwargs={"epochs": 1})
    thread.start()
    thread.join()
    assert len(read_log(tmp_path)) == 1
