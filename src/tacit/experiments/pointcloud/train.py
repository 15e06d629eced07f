"""One training, as the paper describes it, and its test.

PointNet is trained by stochastic gradient descent with momentum on clouds normalised into the unit ball, the learning
rate halved every 20 epochs; outliers, where asked for, replace points in training. Then it is tested on the whole test
set at every share of outliers. The folder holds `config.json`, `log.csv`, checkpoints, and at the end `model.pt` and
`result.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tacit.experiments.common.checkpoint import write_checkpoint
from tacit.experiments.common.config import to_dict
from tacit.experiments.common.distributed import World
from tacit.experiments.common.files import write_json
from tacit.experiments.common.jobs import finished
from tacit.experiments.common.logs import read_log
from tacit.experiments.common.loop import Task, fit
from tacit.experiments.common.report import provenance
from tacit.experiments.common.seeds import seed_of
from tacit.experiments.pointcloud.batches import Batch, steps_of, training_batches
from tacit.experiments.pointcloud.config import Config
from tacit.experiments.pointcloud.data.clouds import Clouds
from tacit.experiments.pointcloud.evaluate import trial, trials
from tacit.experiments.pointcloud.model import PointNet
from tacit.shapes import Tensor

__all__ = ["task_of", "train"]


def train(
    train_set: Clouds, test_set: Clouds, config: Config, folder: Path, world: World, **how: Any
) -> dict[str, Any]:
    """Train and test; return what `result.json` holds. A finished run is not repeated: its result is returned.

    `how` are the options of `fit` (resume, save_every, tensorboard, quiet), and `compile`.
    """
    train_set, test_set = (part.spread(config.clouds).to(world.device) for part in (train_set, test_set))
    data = f"{len(train_set)} clouds of the classes {', '.join(train_set.classes)}"
    done = finished(folder, {**to_dict(config), "data": data}) if how.get("resume") else None
    if done is not None:
        return done
    torch.set_float32_matmul_precision("high" if config.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = config.tf32
    task = task_of(train_set, test_set, config, world)
    task.compile = how.pop("compile", False)
    points = min(config.points, train_set.points.shape[1])  # clouds may have fewer than are asked for
    scale = f"{config.epochs} epochs, {points:,} points, {len(train_set):,} clouds, {len(test_set):,} in the test"
    about = provenance(world.device, seed=config.seed, scale=scale, data=train_set.source)  # of the code as it is now
    label = f"{config.pooling} {100 * config.outliers:g}%"
    fit(task, folder, world=world, config={**to_dict(config), "data": data}, label=label, **how)
    result = {
        "config": to_dict(config),
        "data": data,
        "parameters": sum(parameter.numel() for parameter in task.model.parameters()),
        "rows": trials(task.model, test_set, config, world),
        "about": about,
    }
    if world.first:
        write_json(folder / "config.json", to_dict(config))
        state = {"model": task.model.state_dict(), "config": to_dict(config), "classes": list(train_set.classes)}
        write_checkpoint(folder / "model.pt", state)
        write_json(folder / "result.json", {**result, "log": read_log(folder)})
    return result


def task_of(train_set: Clouds, test_set: Clouds, config: Config, world: World) -> Task:
    """Return the training as the loop takes it."""
    with torch.random.fork_rng():
        torch.manual_seed(seed_of(config.seed, "weights"))
        fresh = PointNet(len(train_set.classes), config.pooling, config.alpha, config.dropout)
    model = world.prepare(fresh)
    optimiser = torch.optim.SGD(
        model.parameters(),
        lr=config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        fused=world.device.type == "cuda",
    )
    return Task(
        model,
        optimiser,
        torch.optim.lr_scheduler.StepLR(optimiser, config.decay_every, config.decay),
        config.epochs,
        steps_of(train_set, config, world),
        lambda epoch, first: training_batches(train_set, config, world, epoch, first),
        _loss,
        lambda model: trial(model, test_set, config, world, config.outliers),
        evaluate_every=config.test_every,
        seed=config.seed,
        amp=config.amp,
    )


def _loss(model: torch.nn.Module, batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
    scores = model(batch.points, batch.mask)
    hits = (scores.detach().argmax(1) == batch.labels).float().mean()
    return torch.nn.functional.cross_entropy(scores, batch.labels), {"accuracy": hits}
