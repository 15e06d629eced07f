"""The paper's second experiment: ResNet-18, plain or with projected features, by stochastic gradient descent."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tacit.errors import OptionError
from tacit.experiments.common.checkpoint import Checkpoints
from tacit.experiments.common.config import to_dict
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import CheckpointError, DataError
from tacit.experiments.common.files import write_json
from tacit.experiments.common.jobs import finished
from tacit.experiments.common.loop import Task, fit
from tacit.experiments.common.report import provenance
from tacit.experiments.common.seeds import seed_of
from tacit.experiments.image.config import EMBEDDED, Config, what_decides
from tacit.experiments.image.data import ImageSet, evenly, load, narrowed
from tacit.experiments.image.evaluate import measure, scores_of
from tacit.experiments.image.feed import Feed, View
from tacit.experiments.image.model import ResNet18, build
from tacit.experiments.image.procedural import procedural
from tacit.experiments.image.resident import ResidentFeed
from tacit.experiments.image.streamed import StreamedFeed
from tacit.shapes import Tensor

__all__ = ["evaluate", "feed_of", "image_sets", "model_of", "train", "trained_model"]

RESIDENT_BYTES = 4 << 30  # a set that takes less, decoded, is kept in memory unless told


def image_sets(config: Config) -> tuple[ImageSet, ImageSet]:
    """Return the images to train on and those to validate on."""
    sets: tuple[ImageSet, ImageSet]
    if config.data == EMBEDDED:
        most = config.images or 2000
        sets = procedural(min(2000, most), "train"), procedural(min(500, most), "val")
    else:
        sets = load(Path(config.data), config.val_share)
    if config.classes:
        sets = narrowed(sets[0], config.classes), narrowed(sets[1], config.classes)
    if config.images:
        sets = evenly(sets[0], config.images), evenly(sets[1], config.images)
    if not all(map(len, sets)):
        raise DataError(f"{config.data}: the first {config.classes} classes have no image to validate on. Take more.")
    return sets


def feed_of(images: ImageSet, config: Config, world: World) -> Feed:
    """Return the images in batches, kept in memory or decoded as needed."""
    view = View(config.size, config.resize, config.least_area)
    small = len(images) * 3 * view.resize**2 <= RESIDENT_BYTES
    kind = ResidentFeed if config.feed == "memory" or (config.feed == "auto" and small) else StreamedFeed
    skip = config.corrupt == "skip"
    return kind(images, world, view, batch=config.batch, seed=config.seed, skip=skip, workers=config.workers)


def model_of(config: Config, classes: int) -> ResNet18:
    """Return the untrained model; its weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(config.seed, "weights"))
        model = build(config.model, classes, radius=config.radius, stem=config.stem, width=config.width)
    for parameter in model.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return model


def loss(model: torch.nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return the cross entropy of a batch, and its top-1 accuracy."""
    images, labels = batch
    scores = model(images)
    right = (scores.detach().argmax(1) == labels).float().mean()
    return torch.nn.functional.cross_entropy(scores, labels), {"accuracy": right}


def train(config: Config, folder: Path, *, resume: bool = False, quiet: bool = False) -> dict[str, Any]:
    """Train by the configuration, measure, write `folder/result.json` and return what it holds.

    A finished run is not repeated: its result is returned.
    """
    config = config.filled()
    done = finished(folder, what_decides(config)) if resume else None
    if done is not None:
        return done
    with World.start(config.device, config.timeout) as world:
        about = provenance(world.device, seed=config.seed)  # of the code as it is now
        train_set, val_set = image_sets(config)
        training, validation = feed_of(train_set, config, world), feed_of(val_set, config, world)
        data = {"training images": len(training), "class names": list(train_set.classes)}
        model = world.prepare(model_of(config, len(train_set.classes)))
        fit(
            _task(config, model, training, validation),
            folder,
            world=world,
            resume=resume,
            config={**what_decides(config), **data},
            save_every=config.save_every,
            tensorboard=config.tensorboard,
            label=config.model,
            quiet=quiet,
        )
        result = {
            "config": to_dict(config),
            "images": {"classes": len(train_set.classes), "train": len(training), "val": len(validation)},
            **measure(*scores_of(model, validation)),
            "skipped": sorted(world.union(training.skipped | validation.skipped)),
            "about": about,
        }
        if world.first:
            write_json(folder / "config.json", to_dict(config))
            write_json(folder / "result.json", result)
        return result


def _task(config: Config, model: torch.nn.Module, training: Feed, validation: Feed) -> Task:
    """Return the paper's protocol: the learning rate is divided by 10 after each stage."""
    optimiser = torch.optim.SGD(
        model.parameters(), config.lr, momentum=config.momentum, weight_decay=config.weight_decay
    )

    def validate(model: torch.nn.Module) -> dict[str, float]:
        measured = measure(*scores_of(model, validation))
        return {f"val_{name}": measured[name] for name in ("top1", "top5", "map", "ece")}

    return Task(
        model,
        optimiser,
        torch.optim.lr_scheduler.StepLR(optimiser, config.stage, 0.1),
        epochs=config.epochs,
        steps=training.steps,
        batches=training.training,
        loss=loss,
        evaluate=validate,
        seed=config.seed,
        amp=config.amp == "on",
        compile=config.compile,
    )


def trained_model(config: Config, folder: Path, classes: tuple[str, ...], device: torch.device) -> ResNet18:
    """Return the model of the last checkpoint in a folder, which must have been trained on these classes."""
    state = Checkpoints(folder).load(device)
    if state is None:
        raise CheckpointError(f"{folder} holds no checkpoint. Train first: tacit image train --folder {folder}")
    if state["config"].get("class names", list(classes)) != list(classes):
        raise CheckpointError(f"{folder} was trained on other classes than those of the data. Give the same (--data).")
    return _loaded(model_of(config, len(classes)).to(device), state["model"], folder)


def _loaded(model: ResNet18, state: Any, where: Path) -> ResNet18:
    """Return the model with a state dict of its own kind, or say where the two differ."""
    own = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in state.items()} if _is_state_dict(state) else {}
    for name in [*own, *found]:
        if own.get(name) != found.get(name):
            raise CheckpointError(
                f"{where}: {name} should be of shape {own.get(name, 'none at all')}; it is {found.get(name, 'missing')}. "
                "The weights are of another model, width, stem or number of classes, or no state dict."
            )
    model.load_state_dict(state)
    return model


def _is_state_dict(state: Any) -> bool:
    return isinstance(state, Mapping) and all(isinstance(value, Tensor) for value in state.values())


def _weights(path: Path, device: torch.device) -> Any:
    """Return what `torch.save` wrote; no code in the file is run."""
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path} cannot be read as a state dict: {str(error).splitlines()[0]}") from None


def evaluate(config: Config, folder: Path | None = None, weights: Path | None = None) -> dict[str, Any]:
    """Return the measures on the validation images of a run's last checkpoint, or of a state dict from elsewhere."""
    config = config.filled()
    with World.start(config.device, config.timeout) as world:
        train_set, val_set = image_sets(config)
        if weights is not None:
            model = model_of(config, len(train_set.classes)).to(world.device)
            model = _loaded(model, _weights(weights, world.device), weights)
        elif folder is not None:
            model = trained_model(config, folder, train_set.classes, world.device)
        else:
            raise OptionError("evaluate expects --folder of a run, or --weights; received neither.")
        feed = feed_of(val_set, config, world)
        return {**measure(*scores_of(model, feed)), "skipped": sorted(world.union(feed.skipped))}
