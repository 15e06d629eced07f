"""Two processes give what one gives; one that is lost ends the other with a word, and the checkpoint stays whole."""

from __future__ import annotations

import time

import pytest
import torch

from experiments.common import toy
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
    options = {"dtype": "float64", "dropout": 0.0, "epochs": 2}
    processes = toy.start(tmp_path / "two", 2, **options)
    toy.train(tmp_path / "one", **{**options, "dtype": torch.float64})
    assert [toy.end(process)[0] for process in processes] == [0, 0]
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
    code, said = toy.end(processes[0])
    assert code != 0
    assert time.monotonic() - began < 60
    processes[1].kill()
    toy.end(processes[1])
    assert "WorkerLostError" in said and "lost another one" in said and "--resume" in said
    state = Checkpoints(tmp_path).load()
    assert (state["epoch"], state["step"]) == (1, 0)


@pytest.mark.slow
def test_two_processes_that_are_resumed_end_as_two_that_were_not(tmp_path):
    for process in toy.start(tmp_path / "whole", 2):
        assert toy.end(process)[0] == 0
    first, second = toy.start(tmp_path / "cut", 2, die=[1, 1, 3], timeout=10)
    assert toy.end(second)[0] != 0 and toy.end(first)[0] != 0
    for process in toy.start(tmp_path / "cut", 2, resume=True):
        code, said = toy.end(process)
        assert code == 0, said
    whole, cut = (Checkpoints(tmp_path / name).load()["model"] for name in ("whole", "cut"))
    assert all(torch.equal(cut[name], value) for name, value in whole.items())
