"""A run belongs to one process at a time, and a finished one is never repeated."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tacit.errors import OptionError
from tacit.experiments.common import jobs
from tacit.experiments.common.errors import ConfigError, TrainingError
from tacit.experiments.common.files import read_json, write_json
from tacit.experiments.common.jobs import Claim, Job, results, run_jobs


def test_a_claim_is_had_once_and_free_again_when_released(tmp_path):
    first, second = Claim(tmp_path / "run"), Claim(tmp_path / "run")
    assert first.take() and not second.take()
    first.release()
    assert second.take()


def test_the_claim_of_a_dead_process_of_this_machine_is_taken_over(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "claim").write_text(f"{socket.gethostname()} {gone.pid}\n")
    assert Claim(tmp_path).take()
    assert str(os.getpid()) in (tmp_path / "claim").read_text()


def test_the_claim_of_another_machine_stands_until_it_has_been_silent_too_long(tmp_path):
    claim = tmp_path / "claim"
    claim.write_text("elsewhere 1\n")
    assert not Claim(tmp_path).take()
    long_ago = claim.stat().st_mtime - jobs.STALE - 60
    os.utime(claim, (long_ago, long_ago))
    assert Claim(tmp_path).take()
    assert [path.name for path in tmp_path.iterdir()] == ["claim"]


def test_a_claim_that_was_taken_over_meanwhile_is_not_taken_from_its_new_holder(tmp_path, monkeypatch):
    """Two find the same claim stale; the slower one gets to move only after the faster one has made it his."""
    (tmp_path / "claim").write_text("elsewhere 1\n")
    os.utime(tmp_path / "claim", (1, 1))
    slow, fast = Claim(tmp_path), Claim(tmp_path)
    bury = slow._bury

    def late(stale):
        assert fast.take()
        bury(stale)

    monkeypatch.setattr(slow, "_bury", late)
    assert not slow.take()
    assert str(os.getpid()) in (tmp_path / "claim").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["claim"]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """In place of the command: a script that writes a result, fails, or waits to be told to stop."""
    script = tmp_path / "fake.py"
    script.write_text(
        "import json, pathlib, signal, sys, time\n"
        "kind, folder = sys.argv[3], pathlib.Path(sys.argv[sys.argv.index('--folder') + 1])\n"
        "(folder / 'runs.txt').open('a').write('x')\n"
        "def stop(*_): sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "if kind == 'wait': (folder / 'waiting').touch(); time.sleep(60)\n"
        "if kind == 'fail': sys.exit('no luck')\n"
        "(folder / 'result.json').write_text(json.dumps({'kind': kind}))\n"
    )
    popen = subprocess.Popen
    monkeypatch.setattr(
        jobs.subprocess, "Popen", lambda command, **how: popen([command[0], str(script), *command[1:]], **how)
    )
    return tmp_path / "results"


def test_runs_are_done_side_by_side_and_never_twice(fake):
    wanted = [Job(name, [name]) for name in ("a", "b", "c")]
    write_json(fake / "b" / "result.json", {"kind": "old"})
    told = []
    assert run_jobs(wanted, fake, workers=2, say=told.append) == {
        "a": {"kind": "a"},
        "b": {"kind": "old"},
        "c": {"kind": "c"},
    }
    assert not (fake / "b" / "runs.txt").exists()
    assert any(line.startswith("c: finished") for line in told)
    run_jobs(wanted, fake, say=told.append)
    assert (fake / "a" / "runs.txt").read_text() == "x"


def test_a_finished_run_of_other_options_is_refused(fake):
    write_json(fake / "a" / "result.json", {"config": {"epochs": 3, "seed": 0}})
    assert run_jobs([Job("a", [], {"epochs": 3})], fake)
    with pytest.raises(ConfigError, match=r"a is finished, under other options: epochs was 3 and is 9"):
        run_jobs([Job("a", [], {"epochs": 9})], fake)


@pytest.mark.parametrize(("workers", "limit"), [(0, None), (1, 0.0), (1, -3.0)])
def test_no_worker_and_no_time_are_refused(tmp_path, workers, limit):
    with pytest.raises(OptionError, match="at least 1 worker and a positive time"):
        run_jobs([], tmp_path, workers=workers, limit=limit)


def test_a_run_somebody_else_is_at_is_left_to_him(fake):
    (fake / "a").mkdir(parents=True)
    (fake / "a" / "claim").write_text("elsewhere 1\n")
    told = []
    assert list(run_jobs([Job("a", ["a"]), Job("b", ["b"])], fake, say=told.append)) == ["b"]
    assert "a: somebody else is at it" in told


def test_one_that_fails_is_named_with_its_last_word_and_the_others_are_done(fake):
    with pytest.raises(TrainingError, match="bad ended with code 1: no luck"):
        run_jobs([Job("bad", ["fail"]), Job("good", ["good"])], fake, say=lambda line: None)
    assert read_json(fake / "good" / "result.json") == {"kind": "good"}
    assert not (fake / "bad" / "claim").exists()


def test_at_the_time_limit_what_runs_is_asked_to_stop_and_can_be_taken_up_again(fake):
    told = []
    assert run_jobs([Job("slow", ["wait"]), Job("later", ["a"])], fake, limit=3, say=told.append) == {}
    assert "slow: saved, to be continued" in told
    assert not (fake / "slow" / "claim").exists() and not (fake / "later").exists()


def test_results_are_read_as_far_as_they_exist(tmp_path):
    write_json(tmp_path / "a" / "result.json", 1)
    assert results([Job("a", []), Job("b", [])], tmp_path) == {"a": 1}
