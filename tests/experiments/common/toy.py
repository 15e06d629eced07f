"""A small training for the tests of the loop, and a way to run it in processes of its own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import torch

from experiments.processes import Process, several
from tacit.experiments.common import checkpoint
from tacit.experiments.common.distributed import World
from tacit.experiments.common.loop import Task, fit
from tacit.experiments.common.metrics import top_k
from tacit.experiments.common.seeds import generator

BATCH, STEPS = 12, 6


def data(dtype=torch.float32):
    drawn = generator(0, "toy")
    x = torch.randn(BATCH * STEPS, 5, generator=drawn, dtype=dtype)
    return x, (x @ torch.randn(5, 3, generator=drawn, dtype=dtype)).argmax(1)


def model_of(dropout=0.5, dtype=torch.float32):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [torch.nn.Linear(5, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers, torch.nn.Dropout(dropout), torch.nn.Linear(16, 3)).to(dtype)


def task_of(world, *, epochs=3, dropout=0.5, dtype=torch.float32, each=lambda epoch, step: None, **options) -> Task:
    x, labels = data(dtype)
    model = world.prepare(model_of(dropout, dtype))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def batches(epoch, first):
        order = torch.randperm(len(x), generator=generator(0, "order", epoch))
        for step in range(first, STEPS):
            each(epoch, step)
            rows = order[step * BATCH : (step + 1) * BATCH][world.share(BATCH)]
            yield x[rows], labels[rows]

    def loss(model, batch):
        scores = model(batch[0])
        hits = (scores.argmax(1) == batch[1]).float().mean()
        return torch.nn.functional.cross_entropy(scores, batch[1]), {"accuracy": hits}

    return Task(
        model,
        optimiser,
        torch.optim.lr_scheduler.StepLR(optimiser, 2, 0.5),
        epochs,
        STEPS,
        batches,
        loss,
        lambda model: {"test": top_k(model(x), labels)},
        **options,
    )


def cut_save(which, moment, die):
    """Have `die()` called within the `which`-th save from now, at one of five moments.

    0: half of the new file is written; 1: it is whole; 2: the last checkpoint has become the previous one, which
    leaves none of the name `last.pt`; 3: just before that; 4: all is done but the return.
    """
    write, replace, counted = checkpoint.write_bytes, checkpoint.os.replace, []

    def cut_write(path, content):
        counted.append(path)
        if len(counted) == which and moment == 0:
            path.with_name("next.pt.1.part").write_bytes(content[: len(content) // 2])
            die()
        write(path, content)
        if len(counted) == which and moment == 1:
            die()

    def cut_replace(old, new):
        ours = len(counted) == which and str(old).endswith(".pt")
        if ours and moment == 3 and str(new).endswith("previous.pt"):
            die()
        replace(old, new)
        if ours and moment == (2 if str(new).endswith("previous.pt") else 4) and not str(new).endswith("next.pt"):
            die()

    checkpoint.write_bytes, checkpoint.os.replace = cut_write, cut_replace
    return write, replace


def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


def train(
    folder, *, resume=False, save_every=0, timeout=60, die=None, hang=None, stop=None, slow=0.0, cut=None, **options
):
    """Train the toy.

    `die`, `hang` and `stop` are the (rank, epoch, step) at which a process is killed, hangs, or is asked to stop; `cut`
    says within which save it is killed, and where.
    """
    if cut:
        cut_save(*cut, kill_myself)
    with World.start("cpu", timeout) as world:

        def each(epoch, step):
            time.sleep(slow)
            if die and [world.rank, epoch, step] == list(die):
                kill_myself()
            if stop and [world.rank, epoch, step] == list(stop):
                signal.raise_signal(signal.SIGTERM)
            if hang and [world.rank, epoch, step] == list(hang):
                time.sleep(600)

        task = task_of(world, each=each, **options)
        fit(task, Path(folder), world=world, resume=resume, save_every=save_every, quiet=True)
        return task


def start(folder, size=1, **options) -> list[Process]:
    """Start the toy in `size` processes."""
    return several(size, _train, str(folder), options)


def _train(folder, options):
    train(folder, **options)
