"""The gradient of one batch of a projected ResNet-18, in double precision, alone or as one process of several."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from tacit.experiments.common.distributed import World
from tacit.experiments.image.config import Config
from tacit.experiments.image.evaluate import scores_of
from tacit.experiments.image.train import feed_of, image_sets, loss, model_of

CONFIG = Config(model="l2-ball", radius=3.0, images=24, batch=12, width=2, size=16, device="cpu", workers=1).filled()


def gradient() -> dict[str, torch.Tensor]:
    """Return the gradients, the running statistics and the scores of the validation images after one step."""
    with World.start("cpu", 60) as world:
        train_set, val_set = image_sets(CONFIG)
        model = world.prepare(model_of(CONFIG, 10)).double()
        images, labels = next(feed_of(train_set, CONFIG, world).training(0))
        wrapped = world.wrap(model)  # must outlive the backward pass, whose gradients it averages
        loss(wrapped, (images.double(), labels))[0].backward()
        found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        found |= {name: buffer.clone() for name, buffer in model.named_buffers() if buffer.is_floating_point()}
        found["scores"] = scores_of(model.float(), feed_of(val_set, CONFIG, world))[0]
        return found


def save(folder: Path) -> None:
    """Write what `gradient` returns to a file named after the process."""
    torch.save(gradient(), folder / f"{os.environ['RANK']}.pt")
