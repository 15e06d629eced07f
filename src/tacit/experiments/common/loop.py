"""The training loop: epochs, checkpoints, resume, Ctrl-C. What is trained is a `Task`; the loop knows no more of it.

    task = Task(model, optimiser, schedule, epochs=60, steps=410, batches=batches, loss=loss, evaluate=evaluate)
    history = fit(task, folder, world=world, resume=True, config=to_dict(config))

* `batches(epoch, first)` yields the batches of an epoch from step `first` on, the same ones whenever it is asked: this
  process's share of each. Take what is random from `common.seeds` with (seed, epoch, step).
* `loss(model, batch)` returns the mean loss over the batch and a dict of detached 0-dim means to log; nothing is read
  from the device within an epoch, except about once a second to show.
* `evaluate(model)` returns numbers to log at the end of an epoch, or is None.

The global generators are seeded before each step from (seed, rank, epoch, step), so that dropout does not depend on what
came before. A run that was killed continues from its last checkpoint to the very bits it would have reached.
"""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tacit.experiments.common.checkpoint import Checkpoints
from tacit.experiments.common.config import differences
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import CheckpointError, Interrupted, TrainingError
from tacit.experiments.common.files import alone_in
from tacit.experiments.common.logs import Log
from tacit.experiments.common.progress import Progress
from tacit.experiments.common.seeds import seed_of
from tacit.shapes import Tensor

__all__ = ["Task", "fit"]

_AGREE = 2.0  # seconds, about, between two times that several processes ask each other whether to stop


@dataclass
class Task:
    """What is trained, and how a step of it goes."""

    model: torch.nn.Module
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler  # stepped once an epoch
    epochs: int
    steps: int  # an epoch
    batches: Callable[[int, int], Iterable[Any]]
    loss: Callable[[torch.nn.Module, Any], tuple[Tensor, Mapping[str, Tensor]]]
    evaluate: Callable[[torch.nn.Module], Mapping[str, float]] | None = None
    evaluate_every: int = 1  # epochs; the first and the last are always evaluated
    seed: int = 0
    amp: bool = False  # bfloat16 where autocast deems it safe
    compile: bool = False


@dataclass
class _Place:
    """Where a training is, and the sums over the epoch so far."""

    epoch: int = 0
    step: int = 0
    sums: Tensor | None = None
    seconds: float = 0.0


def fit(
    task: Task,
    folder: Path,
    *,
    world: World,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
    save_every: int = 0,
    tensorboard: bool = False,
    label: str = "training",
    quiet: bool = False,
) -> None:
    """Train to the end, or from the last checkpoint in `folder` to the end.

    Args:
        task: what is trained; its model holds the result.
        folder: where checkpoints and logs are.
        world: the processes.
        resume: continue; a folder without a checkpoint starts at the beginning. Without it, a folder that holds one is
            refused.
        config: plain values that a checkpoint must have been made with.
        save_every: steps between two checkpoints within an epoch; 0: at the end of each epoch alone.
        tensorboard, label, quiet: of the log and the progress.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is saved.
        TrainingError: the loss is not finite; or another process is training in the folder.
        CheckpointError: damaged, or of another configuration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    devices = [world.device] if world.device.type == "cuda" else []
    with alone_in(folder) if world.first else contextlib.nullcontext(), torch.random.fork_rng(devices=devices):
        _Fit(task, folder, world, dict(config or {}), save_every, quiet).run(resume, tensorboard, label)


class _Fit:
    """One call of `fit`."""

    def __init__(
        self, task: Task, folder: Path, world: World, config: dict[str, Any], save_every: int, quiet: bool
    ) -> None:
        self.task, self.folder, self.world, self.config, self.save_every = task, folder, world, config, save_every
        self.quiet = quiet
        self.place = _Place()
        self.names: list[str] = []
        self.asked, self.unasked, self.period = time.monotonic(), 0, 1
        self.checkpoints = Checkpoints(folder, tell=self.tell)

    def run(self, resume: bool, tensorboard: bool, label: str) -> None:
        task, place, world = self.task, self.place, self.world
        self.restore(resume)
        self.check_all_are_at_the_same_place()
        model = world.wrap(task.model)
        if task.compile:
            model = torch.compile(model)  # type: ignore[assignment]
        log = Log(self.folder, place.epoch, tensorboard=tensorboard) if world.first else None
        start = place.epoch * task.steps + place.step
        shown = world.first and not self.quiet
        with _stop_signals() as stop, Progress(label, task.epochs * task.steps, start, shown=shown) as progress:
            self.begun = time.monotonic() - place.seconds
            while place.epoch < task.epochs:
                self.run_epoch(model, stop, progress)
                row = self.finish_epoch(model)
                if log is not None:
                    log.row(row)
                progress.say("  ".join(f"{name} {value:.4g}" for name, value in row.items()))
                self.save()
                if self.asked_to_stop(stop, now=True):
                    raise Interrupted(
                        f"Stopped after epoch {place.epoch} of {task.epochs} as asked; the state is in "
                        f"{self.checkpoints.last}. The same command with --resume goes on from there."
                    )

    def tell(self, sentence: str) -> None:
        """Say what must be known also where progress is not shown."""
        if self.world.first:
            print(sentence, file=sys.stderr, flush=True)

    def check_all_are_at_the_same_place(self) -> None:
        """Raise where processes read different checkpoints, as they do on machines that do not share the folder."""
        here = torch.tensor([self.place.epoch, self.place.step], device=self.world.device)
        total = self.world.sum(here.clone())
        differs = not torch.equal(total, here * self.world.size)
        if self.world.any(differs):
            raise CheckpointError(
                f"Process {self.world.rank} would go on from epoch {self.place.epoch}, step {self.place.step}, others "
                f"from elsewhere. All processes have to see the same folder {self.folder}."
            )

    def asked_to_stop(self, stop: threading.Event, *, now: bool = False) -> bool:
        """Whether to stop. Several processes have to agree, at the same step, which takes time: now and then is enough."""
        world = self.world
        if world.size == 1:
            return stop.is_set()
        self.unasked += 1
        if self.unasked < self.period and not now:
            return False
        pace = (time.monotonic() - self.asked) / self.unasked
        wishes, paces = world.sum(
            torch.tensor([stop.is_set(), pace], dtype=torch.float64, device=world.device)
        ).tolist()
        self.period = max(1, min(256, int(_AGREE * world.size / max(paces, 1e-6))))  # the same number for all of them
        self.asked, self.unasked = time.monotonic(), 0
        return wishes > 0

    def run_epoch(self, model: torch.nn.Module, stop: threading.Event, progress: Progress) -> None:
        task, place = self.task, self.place
        task.model.train()
        looked = time.monotonic()
        batches = task.batches(place.epoch, place.step)
        for batch in batches if place.step < task.steps else ():
            self.step(model, batch)
            if self.asked_to_stop(stop):
                self.save()
                raise Interrupted(
                    f"Stopped after step {place.step} of epoch {place.epoch + 1} as asked; the state is in "
                    f"{self.checkpoints.last}. The same command with --resume goes on from there."
                )
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                progress.update(place.epoch * task.steps + place.step, **self.means(shared=False))
            if self.save_every and place.step % self.save_every == 0 and place.step < task.steps:
                self.save()

    def step(self, model: torch.nn.Module, batch: Any) -> None:
        task, place, world = self.task, self.place, self.world
        torch.manual_seed(seed_of(task.seed, "step", world.rank, place.epoch, place.step))
        with torch.autocast(world.device.type, torch.bfloat16, enabled=task.amp):
            loss, values = task.loss(model, batch)
        task.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        task.optimiser.step()
        self.names = ["loss", *values]
        row = torch.stack([loss.detach().float(), *(value.detach().float() for value in values.values())]).double()
        place.sums = row if place.sums is None else place.sums + row
        place.step += 1

    def means(self, *, shared: bool) -> dict[str, float]:
        """Return the means over the epoch so far, of this process or of all; this reads from the device."""
        place = self.place
        if place.sums is None:
            return {}
        sums = self.world.sum(place.sums.clone()) / self.world.size if shared else place.sums
        means = dict(zip(self.names, (sums / place.step).tolist()))
        self.check_finite(means)
        return means

    def check_finite(self, means: Mapping[str, float]) -> None:
        place, last = self.place, self.checkpoints.last
        if not all(math.isfinite(value) for value in means.values()):
            raise TrainingError(
                f"The loss is not finite in epoch {place.epoch + 1}, at or before step {place.step}: {dict(means)}. Lower "
                f"the learning rate, or look at the data. "
                + (f"The last checkpoint is {last}." if last.exists() else "No checkpoint was saved before.")
            )

    def finish_epoch(self, model: torch.nn.Module) -> dict[str, float]:
        task, place = self.task, self.place
        rate = task.optimiser.param_groups[0]["lr"]
        row = {"epoch": place.epoch, "lr": rate, **self.means(shared=True)}
        due = place.epoch % task.evaluate_every == 0 or place.epoch + 1 == task.epochs
        if task.evaluate is not None and due:
            task.model.eval()
            with torch.no_grad(), torch.autocast(self.world.device.type, torch.bfloat16, enabled=task.amp):
                row.update(task.evaluate(task.model))
        task.schedule.step()
        place.seconds = time.monotonic() - self.begun
        place.epoch, place.step, place.sums = place.epoch + 1, 0, None
        return {**row, "seconds": place.seconds}

    def save(self) -> None:
        """Write a checkpoint; the first process does it for all, whose states are the same but for what is seeded."""
        place, task = self.place, self.task
        sums = None if place.sums is None else self.world.sum(place.sums.clone()) / self.world.size
        if sums is not None:  # what is not finite must not take the place of a checkpoint that one can go on from
            self.check_finite(dict(zip(self.names, sums.tolist())))
        if not self.world.first:
            return
        place.seconds = time.monotonic() - self.begun
        self.checkpoints.save(
            {
                "model": task.model.state_dict(),
                "optimiser": task.optimiser.state_dict(),
                "schedule": task.schedule.state_dict(),
                "epoch": place.epoch,
                "step": place.step,
                "names": self.names,
                "sums": sums,
                "seconds": place.seconds,
                "config": self.config,
            }
        )

    def restore(self, resume: bool) -> None:
        place, task = self.place, self.task
        state = self.checkpoints.load(self.world.device)
        if state is None:
            return
        if not resume:
            raise CheckpointError(
                f"{self.folder} holds a training already, {state['epoch']} epochs of it done. Continue it with "
                "--resume, or choose another folder."
            )
        changed = differences(state["config"], self.config)
        if changed:
            raise CheckpointError(
                f"{self.checkpoints.last} was made with other options: {changed}. Continue with the same, or choose "
                "another folder."
            )
        task.model.load_state_dict(state["model"])
        task.optimiser.load_state_dict(state["optimiser"])
        task.schedule.load_state_dict(state["schedule"])
        place.epoch, place.step, place.seconds = state["epoch"], state["step"], state["seconds"]
        place.sums, self.names = state["sums"], state["names"]


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Set the event at the first Ctrl-C or SIGTERM; a second one has its usual effect. Only in the main thread."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.getsignal(kind) for kind in kinds}

    def note(kind: int, frame: Any) -> None:
        stop.set()
        signal.signal(kind, before[signal.Signals(kind)])

    for kind in kinds:
        signal.signal(kind, note)
    try:
        yield stop
    finally:
        for kind in kinds:
            signal.signal(kind, before[kind])
