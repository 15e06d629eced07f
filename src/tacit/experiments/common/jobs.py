"""A table is a list of independent runs, each in a folder of its own; whoever has time takes the next one.

    jobs = [Job("table2-huber", ["pointcloud", "train", "--pooling", "huber"], {"pooling": "huber", ...}), ...]
    done = run_jobs(jobs, folder, workers=2)      # name -> result, of all that are finished

A run is `python -m tacit.experiments ARGUMENTS --folder FOLDER/NAME --resume` in a process of its own. It is finished
when `FOLDER/NAME/result.json` is there, and is never repeated; one that was done under other options is refused.
Several machines may share the folder: a run belongs to whoever created `FOLDER/NAME/claim`, which is touched while the
run lives and taken over when it has not been for `STALE` seconds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import OptionError
from tacit.experiments.common.config import differences
from tacit.experiments.common.errors import ConfigError, TrainingError
from tacit.experiments.common.files import read_json
from tacit.experiments.common.logs import read_log

__all__ = ["Claim", "Job", "finished", "results", "run_jobs"]

STALE = 300.0  # seconds without a sign of life after which a claim is void


@dataclass(frozen=True)
class Job:
    """One run: the name of its folder, the arguments of the command `tacit`, and options a result must have come from."""

    name: str
    arguments: Sequence[str]
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Claim:
    """The right to work in a folder, had by whoever could create the file `claim` there; it names the process at work."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "claim"

    def take(self) -> bool:
        """Try to get the claim; False where somebody alive holds it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        stale = self._stale()
        if stale:
            self._bury(stale)
        try:
            descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        os.close(descriptor)
        self.name(os.getpid())
        return True

    def name(self, process: int) -> None:
        """Say which process of this machine does the work."""
        self.path.write_text(f"{socket.gethostname()} {process}\n")

    def touch(self) -> None:
        """Show that the holder is alive."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path)

    def release(self) -> None:
        """Give the claim back."""
        self.path.unlink(missing_ok=True)

    def _stale(self) -> str:
        """Return a name for this very claim where its holder is gone, else nothing."""
        try:
            said, touched = self.path.read_text(), self.path.stat()
        except FileNotFoundError:
            return ""
        host, _, process = said.strip().partition(" ")
        gone = host == socket.gethostname() and process.isdigit() and not _alive(int(process))
        if not gone and _now(self.path.parent) - touched.st_mtime <= STALE:
            return ""
        return hashlib.sha256(f"{said} {touched.st_mtime_ns} {touched.st_ino}".encode()).hexdigest()[:16]

    def _bury(self, stale: str) -> None:
        """Remove a stale claim, and never the fresh one of somebody who found it stale too and was faster.

        Whoever creates the grave may remove; by then it has to be the same claim still.
        """
        grave = self.path.with_name(f"claim.{stale}.stale")
        try:
            os.close(os.open(grave, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                if _now(grave.parent) - grave.stat().st_mtime > STALE:  # its digger died in between
                    grave.unlink()
            return
        if self._stale() == stale:
            self.path.unlink(missing_ok=True)
        grave.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _now(folder: Path) -> float:
    """Return the time by the clock of the disk the folder is on, which all machines that share it agree about."""
    probe = folder / f"clock.{socket.gethostname()}.{os.getpid()}"
    probe.touch()
    try:
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def finished(folder: Path, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a finished run left in `result.json`, or None where there is none.

    Raises:
        ConfigError: it was done under other options than are wanted, of those that are named.
    """
    path = folder / "result.json"
    if not path.exists():
        return None
    result: dict[str, Any] = read_json(path)
    if wanted:
        had = {**result["config"], "data": result.get("data", wanted.get("data"))}
        changed = differences({key: had.get(key) for key in wanted}, wanted)
        if changed:
            raise ConfigError(f"{folder} is finished, under other options: {changed}. Choose another folder.")
    return result


def results(jobs: Sequence[Job], folder: Path) -> dict[str, Any]:
    """Return the results of those jobs that are finished, by name."""
    found = {}
    for job in jobs:
        path = folder / job.name / "result.json"
        if path.exists():
            found[job.name] = read_json(path)
    return found


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    *,
    workers: int = 1,
    limit: float | None = None,
    say: Callable[[str], None] = lambda sentence: print(sentence, file=sys.stderr, flush=True),
) -> dict[str, Any]:
    """Run what is not finished and nobody else has claimed, `workers` at a time; return all results there are.

    Args:
        jobs: the runs, in order of importance.
        folder: each run's folder is made in it.
        workers: processes at a time.
        limit: seconds after which the runs are asked to save and stop; call again to go on.
        say: told of beginnings, progress and ends.

    Raises:
        OptionError: no worker, or no time.
        ConfigError: a finished run was done under other options than its job has.
        TrainingError: some runs ended with an error; the others were still done.
    """
    if workers < 1 or (limit is not None and not limit > 0):
        raise OptionError(f"Runs expect at least 1 worker and a positive time; received {workers} and {limit}.")
    for job in jobs:
        finished(folder / job.name, job.config)
    with _Shift(folder, workers, limit, say) as shift:
        shift.work([job for job in jobs if not (folder / job.name / "result.json").exists()])
    if shift.failed:
        raise TrainingError("\n".join(shift.failed))
    return results(jobs, folder)


class _Shift:
    """One call of `run_jobs`: the processes that run now."""

    def __init__(self, folder: Path, workers: int, limit: float | None, say: Callable[[str], None]) -> None:
        self.folder, self.workers, self.say = folder, workers, say
        self.end = float("inf") if limit is None else time.monotonic() + limit
        self.running: dict[str, tuple[subprocess.Popen[bytes], Claim, float]] = {}
        self.failed: list[str] = []
        self.stopping = threading.Event()

    def __enter__(self) -> _Shift:
        self.before = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda kind, frame: self.stopping.set())
        return self

    def __exit__(self, *error: object) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.before)
        self.stop()

    def work(self, jobs: list[Job]) -> None:
        told = time.monotonic()
        for job in self.open_places(jobs):
            claim = Claim(self.folder / job.name)
            if not claim.take():
                self.say(f"{job.name}: somebody else is at it")
            elif (self.folder / job.name / "result.json").exists():
                claim.release()  # finished by another machine since the list was made
            else:
                self.start(job, claim)
        while self.running and not self.over():
            self.look()
            if time.monotonic() - told > 15:
                told = time.monotonic()
                self.say("; ".join(f"{name}: {len(read_log(self.folder / name))} epochs" for name in self.running))

    def open_places(self, jobs: list[Job]) -> Iterator[Job]:
        for job in jobs:
            while len(self.running) >= self.workers and not self.over():
                self.look()
            if self.over():
                return
            yield job

    def over(self) -> bool:
        return self.stopping.is_set() or time.monotonic() > self.end

    def start(self, job: Job, claim: Claim) -> None:
        folder = self.folder / job.name
        command = [sys.executable, "-m", "tacit.experiments", *job.arguments, "--folder", str(folder), "--resume"]
        with open(folder / "output.txt", "ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        claim.name(process.pid)
        self.running[job.name] = (process, claim, time.monotonic())
        self.say(f"{job.name}: started")

    def look(self) -> None:
        time.sleep(0.2)
        for name, (process, claim, since) in list(self.running.items()):
            claim.touch()
            code = process.poll()
            if code is None:
                continue
            del self.running[name]
            claim.release()
            if code == 0:
                self.say(f"{name}: finished after {time.monotonic() - since:.0f} s")
            else:
                lines = (self.folder / name / "output.txt").read_text(errors="replace").splitlines()
                self.failed.append(f"{name} ended with code {code}: {lines[-1] if lines else 'no word'}")
                self.say(self.failed[-1])

    def stop(self) -> None:
        """Ask what still runs to save and stop, and wait for it."""
        for process, _, _ in self.running.values():
            process.send_signal(signal.SIGTERM)
        for name, (process, claim, _) in self.running.items():
            process.wait()
            claim.release()
            done = (self.folder / name / "result.json").exists()
            self.say(f"{name}: {'finished' if done else 'saved, to be continued'}")
        self.running.clear()
