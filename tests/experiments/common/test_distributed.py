"""Two processes give what one gives; one that is lost ends the other with a word, and the checkpoint stays whole."""

from __future__ import annotations

import os
import signal
import time

import pytest
import torch

from experiments.common import toy
from experiments.processes import several
from tacit.errors import OptionError
from tacit.experiments.common.checkpoint import Checkpoints
from tacit.experiments.common.distributed import World, pick_device


def test_alone_a_world_is_transparent():
    with World.start("cpu") as world:
        model = toy.model_of()
        assert world.first and world.prepare(model) is model and world.wrap(model) is model
        assert world.sum(torch.ones(2)).tolist() == [1.0, 1.0]
        assert world.any(True) and not world.any(False)


@pytest.mark.parametrize(("count", "size"), [(12, 2), (7, 3), (1, 4), (0, 2)])
def test_shares_are_equal_parts_that_make_up_the_whole(count, size):
    rows = list(range(count))
    parts = [rows[World(torch.device("cpu"), rank, size).share(count)] for rank in range(size)]
    assert [row for part in parts for row in part] == rows
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused_with_advice():
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(OptionError, match=r"sees no GPU.*--device cpu"):
        pick_device("cuda")


@pytest.mark.parametrize("name", ["foo", "cuda:x", "cpu:3", ""])
def test_a_device_that_does_not_exist_is_refused(name):
    with pytest.raises(OptionError, match="device expects auto, cpu, cuda or cuda:N"):
        pick_device(name)


def test_two_processes_train_to_what_one_trains_to_in_double_precision(tmp_path):
    """Eighteen steps with batch normalisation: gradients that differed would have led elsewhere."""
    options = {"dtype": torch.float64, "dropout": 0.0, "epochs": 2}
    processes = toy.start(tmp_path / "two", 2, **options)
    toy.train(tmp_path / "one", **options)
    assert [process.end()[0] for process in processes] == [0, 0]
    one, two = (Checkpoints(tmp_path / name).load() for name in ("one", "two"))
    for name, value in one["model"].items():
        torch.testing.assert_close(two["model"][name], value, rtol=1e-12, atol=1e-12)
    for slot, kept in one["optimiser"]["state"].items():
        momentum = two["optimiser"]["state"][slot]["momentum_buffer"]
        torch.testing.assert_close(momentum, kept["momentum_buffer"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fault", ["die", pytest.param("hang", marks=pytest.mark.slow)])
def test_a_lost_worker_ends_the_other_in_time_with_a_word_and_a_whole_checkpoint(tmp_path, fault):
    began = time.monotonic()
    processes = toy.start(tmp_path, 2, timeout=10, **{fault: [1, 1, 3]})
    code, said = processes[0].end()
    assert code != 0
    assert time.monotonic() - began < 60
    processes[1].kill()
    assert processes[1].end()[0] == -signal.SIGKILL
    assert "WorkerLostError" in said and "lost another one" in said and "--resume" in said
    state = Checkpoints(tmp_path).load()
    assert (state["epoch"], state["step"]) == (1, 0)


def test_two_processes_stop_together_where_one_is_asked_to_and_go_on_to_the_same_end(tmp_path):
    """Epochs are short: that they agree now and then must not mean never."""
    for process in toy.start(tmp_path / "whole", 2, epochs=4):
        assert process.end()[0] == 0
    stopped = toy.start(tmp_path / "cut", 2, epochs=4, stop=[1, 1, 2])
    for process in stopped:
        code, said = process.end()
        assert code == 1 and "Interrupted: Stopped after" in said and "--resume goes on" in said
    assert Checkpoints(tmp_path / "cut").load()["epoch"] < 4
    for process in toy.start(tmp_path / "cut", 2, epochs=4, resume=True):
        assert process.end()[0] == 0
    whole, cut = (Checkpoints(tmp_path / name).load()["model"] for name in ("whole", "cut"))
    assert all(torch.equal(cut[name], value) for name, value in whole.items())


def test_processes_that_do_not_see_the_same_folder_are_told(tmp_path):
    toy.train(tmp_path / "0", epochs=1)
    for process in several(2, train_in_a_folder_of_ones_own, tmp_path):
        code, said = process.end()
        assert code != 0 and "All processes have to see the same folder" in said


def train_in_a_folder_of_ones_own(folder):
    toy.train(folder / os.environ["RANK"], resume=True)


def test_what_one_process_found_all_know(tmp_path):
    for process in several(3, find, tmp_path):
        assert process.end()[0] == 0
    assert [(tmp_path / str(rank)).read_text() for rank in range(3)] == ["0 1 2 all"] * 3


def find(folder):
    with World.start("cpu", 60) as world:
        found = world.union({"all", str(world.rank)})
        (folder / str(world.rank)).write_text(" ".join(sorted(found)))


@pytest.mark.slow
def test_two_processes_that_are_resumed_end_as_two_that_were_not(tmp_path):
    for process in toy.start(tmp_path / "whole", 2):
        assert process.end()[0] == 0
    first, second = toy.start(tmp_path / "cut", 2, die=[1, 1, 3], timeout=10)
    assert second.end()[0] != 0 and first.end()[0] != 0
    for process in toy.start(tmp_path / "cut", 2, resume=True):
        code, said = process.end()
        assert code == 0, said
    whole, cut = (Checkpoints(tmp_path / name).load()["model"] for name in ("whole", "cut"))
    assert all(torch.equal(cut[name], value) for name, value in whole.items())
