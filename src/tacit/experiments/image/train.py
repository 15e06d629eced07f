"""The paper's second experiment: ResNet-18, plain or with projected features, by stochastic gradient descent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tacit.errors import OptionError
from tacit.experiments.common.checkpoint import Checkpoints
from tacit.experiments.common.config import build as build_config
from tacit.experiments.common.config import option, to_dict
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import CheckpointError
from tacit.experiments.common.files import read_json, write_json
from tacit.experiments.common.loop import Task, fit
from tacit.experiments.common.report import provenance
from tacit.experiments.common.seeds import seed_of
from tacit.experiments.image.data import ImageSet, load
from tacit.experiments.image.evaluate import measure, scores_of
from tacit.experiments.image.feed import Feed, View
from tacit.experiments.image.model import MODELS, STEMS, ResNet18, build
from tacit.experiments.image.procedural import procedural
from tacit.experiments.image.resident import ResidentFeed
from tacit.experiments.image.streamed import StreamedFeed
from tacit.shapes import Tensor

__all__ = ["Config", "config_of", "evaluate", "feed_of", "image_sets", "model_of", "train", "trained_model"]

EMBEDDED = "embedded"
RESIDENT_BYTES = 4 << 30  # a set that takes less, decoded, is kept in memory unless told


@dataclass(frozen=True)
class Config:
    """The paper's protocol; what is None follows from the data."""

    model: str = option("plain", "plain, or the projection before the classifier", tuple(MODELS))
    radius: float | None = option(None, "radius of the sphere or ball; `tacit image scale` measures it")
    data: str = option(EMBEDDED, "folder or .npz file of images; embedded: drawn figures")
    val_share: float = option(0.2, "share held out where the data has no val part")
    size: int | None = option(None, "pixels the network sees: 224; 32 for the embedded images")
    resize: int | None = option(None, "pixels of the shorter side before the central crop: 8/7 of size")
    least_area: float = option(0.08, "smallest share of an image that a training crop covers")
    feed: str = option("auto", "keep decoded images in memory, or decode as needed", ("auto", "memory", "disk"))
    corrupt: str = option("raise", "what a broken image does; skip: left out and counted", ("raise", "skip"))
    workers: int = option(4, "processes or threads that decode")
    stem: str | None = option(
        None, "first layers: imagenet from 128 pixels on, medium from 48, else small", tuple(STEMS)
    )
    width: int | None = option(None, "channels of the first stage: 64; 16 for the embedded images")
    epochs: int = option(90, "passes over the training images")
    stage: int | None = option(None, "epochs between two divisions of the learning rate by 10: a third of them")
    batch: int = option(256, "images a step, over all processes")
    lr: float = option(0.1, "learning rate at the beginning")
    momentum: float = option(0.9, "of stochastic gradient descent")
    weight_decay: float = option(1e-4, "of stochastic gradient descent")
    seed: int = option(0, "of weights, order and crops")
    device: str = option("auto", "cpu, cuda, cuda:1; auto: a GPU where there is one")
    amp: bool | None = option(None, "bfloat16 where it is safe: on GPU")
    compile: bool = option(False, "torch.compile the model")
    save_every: int = option(0, "steps between checkpoints within an epoch; 0: at its end alone")
    timeout: float = option(600.0, "seconds after which a process that is not heard of is given up")
    tensorboard: bool = option(False, "write TensorBoard files too")

    def view(self) -> View:
        """Return how images are looked at."""
        size = self.size if self.size is not None else 32 if self.data == EMBEDDED else 224
        whole = self.data == EMBEDDED
        return View(
            size, self.resize if self.resize is not None else size if whole else round(size * 8 / 7), self.least_area
        )


def image_sets(config: Config) -> tuple[ImageSet, ImageSet]:
    """Return the images to train on and those to validate on."""
    if config.data == EMBEDDED:
        return procedural(2000, "train"), procedural(500, "val")
    return load(Path(config.data), config.val_share)


def feed_of(images: ImageSet, config: Config, world: World) -> Feed:
    """Return the images in batches, kept in memory or decoded as needed."""
    view = config.view()
    small = len(images) * 3 * view.resize**2 <= RESIDENT_BYTES
    kind = ResidentFeed if config.feed == "memory" or (config.feed == "auto" and small) else StreamedFeed
    return kind(
        images,
        world,
        view,
        batch=config.batch,
        seed=config.seed,
        skip=config.corrupt == "skip",
        workers=config.workers,
    )


def model_of(config: Config, classes: int) -> ResNet18:
    """Return the untrained model; its weights depend on the seed alone."""
    size = config.view().size
    stem = config.stem or ("imagenet" if size >= 128 else "medium" if size >= 48 else "small")
    width = config.width or (16 if config.data == EMBEDDED else 64)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(config.seed, "weights"))
        model = build(config.model, classes, radius=config.radius, stem=stem, width=width)
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
    """Train by the configuration, measure, write `folder/result.json` and return what it holds."""
    with World.start(config.device, config.timeout) as world:
        train_set, val_set = image_sets(config)
        training, validation = feed_of(train_set, config, world), feed_of(val_set, config, world)
        model = world.prepare(model_of(config, len(train_set.classes)))
        optimiser = torch.optim.SGD(
            model.parameters(), config.lr, momentum=config.momentum, weight_decay=config.weight_decay
        )
        stage = config.stage or max(1, math.ceil(config.epochs / 3))

        def validate(model: torch.nn.Module) -> dict[str, float]:
            measured = measure(*scores_of(model, validation, world))
            return {f"val_{name}": measured[name] for name in ("top1", "top5", "map", "ece")}

        task = Task(
            model,
            optimiser,
            torch.optim.lr_scheduler.StepLR(optimiser, stage, 0.1),
            epochs=config.epochs,
            steps=training.steps,
            batches=training.training,
            loss=loss,
            evaluate=validate,
            seed=config.seed,
            amp=config.amp if config.amp is not None else world.device.type == "cuda",
            compile=config.compile,
        )
        if world.first:
            write_json(folder / "config.json", to_dict(config))
        fit(
            task,
            folder,
            world=world,
            resume=resume,
            config=_what_decides(config),
            save_every=config.save_every,
            tensorboard=config.tensorboard,
            label=config.model,
            quiet=quiet,
        )
        result = {
            "config": to_dict(config),
            "images": {"classes": len(train_set.classes), "train": len(training), "val": len(validation)},
            "view": dataclasses.asdict(config.view()),
            "skipped": sorted(training.skipped | validation.skipped),
            **measure(*scores_of(model, validation, world)),
            "about": provenance(world.device, seed=config.seed),
        }
        if world.first:
            write_json(folder / "result.json", result)
        return result


def _what_decides(config: Config) -> dict[str, Any]:
    """Return the options that decide the result; a training may continue under others of how it is carried out."""
    free = ("data", "device", "workers", "save_every", "timeout", "tensorboard")
    return {key: value for key, value in to_dict(config).items() if key not in free}


def config_of(folder: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Return the configuration a run was started with, some of it overridden."""
    path = folder / "config.json"
    if not path.exists():
        raise OptionError(f"{folder} expects the folder of a run of `tacit image train`; it holds no config.json.")
    return build_config(Config, overrides={**read_json(path), **(overrides or {})})


def trained_model(config: Config, folder: Path, classes: int, device: torch.device) -> ResNet18:
    """Return the model of the last checkpoint in a folder."""
    state = Checkpoints(folder).load(device)
    if state is None:
        raise CheckpointError(f"{folder} holds no checkpoint. Train first: tacit image train --folder {folder}")
    model = model_of(config, classes).to(device)
    model.load_state_dict(state["model"])
    return model


def evaluate(config: Config, folder: Path | None = None, weights: Path | None = None) -> dict[str, Any]:
    """Return the measures on the validation images of a run's last checkpoint, or of a state dict such as others share.

    A state dict without the statistics of the projection's batch normalisation does not fit a projected model.
    """
    with World.start(config.device, config.timeout) as world:
        train_set, val_set = image_sets(config)
        if weights is not None:
            model = model_of(config, len(train_set.classes))
            model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        elif folder is not None:
            model = trained_model(config, folder, len(train_set.classes), world.device)
        else:
            raise OptionError("evaluate expects the folder of a run, or weights; received neither.")
        feed = feed_of(val_set, config, world)
        measured = measure(*scores_of(model.to(world.device), feed, world))
        return {**measured, "skipped": sorted(feed.skipped)}
