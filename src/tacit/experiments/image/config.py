"""The options of a run; their defaults are the paper's protocol."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import OptionError
from tacit.experiments.common.config import build, check, option, to_dict
from tacit.experiments.common.distributed import pick_device
from tacit.experiments.common.files import read_json
from tacit.experiments.image.model import MODELS, STEMS

__all__ = ["EMBEDDED", "Config", "config_of", "what_decides"]

EMBEDDED = "embedded"


@dataclass(frozen=True)
class Config:
    """0 and "auto" stand for what follows from the data: the paper's value, or a lighter one for the drawn figures."""

    model: str = option("plain", "plain, or the projection before the classifier", tuple(MODELS))
    radius: float | None = option(None, "radius of the sphere or ball; `tacit image scale` measures it", above=0)
    data: str = option(EMBEDDED, "folder or .npz file of images; embedded: drawn figures")
    classes: int = option(0, "only the first so many classes of the data; 0: all", least=0)
    images: int = option(
        0, "at most so many images to train on, and to validate on, classes in equal parts; 0: all", least=0
    )
    val_share: float = option(0.2, "share held out where the data has no val part", above=0, below=1)
    size: int = option(0, "pixels the network sees; 0: 224, embedded 32", least=0)
    resize: int = option(
        0, "pixels of the shorter side before the central crop; 0: 8/7 of size, embedded size", least=0
    )
    least_area: float = option(
        0.0, "smallest share of an image a training crop covers; 0: 0.08, embedded 0.5", least=0, most=1
    )
    feed: str = option("auto", "keep decoded images in memory, or decode as needed", ("auto", "memory", "disk"))
    corrupt: str = option("raise", "what a broken image does; skip: left out and counted", ("raise", "skip"))
    workers: int = option(4, "processes or threads that decode", least=0)
    stem: str = option("auto", "imagenet from 128 pixels on, else medium; small shrinks least", ("auto", *STEMS))
    width: int = option(0, "channels of the first stage; 0: 64, embedded 16", least=0)
    epochs: int = option(90, "passes over the training images", least=1)
    stage: int = option(0, "epochs between two divisions of the learning rate by 10; 0: a third of them", least=0)
    batch: int = option(0, "images a step, over all processes; 0: 256, embedded 64", least=0)
    lr: float = option(0.1, "learning rate at the beginning", above=0)
    momentum: float = option(0.9, "of stochastic gradient descent", least=0, below=1)
    weight_decay: float = option(1e-4, "of stochastic gradient descent", least=0)
    seed: int = option(0, "of weights, order and crops")
    device: str = option("auto", "cpu, cuda, cuda:1; auto: a GPU where there is one")
    amp: str = option("auto", "bfloat16 where it is safe; auto: on GPU", ("auto", "on", "off"))
    compile: bool = option(False, "torch.compile the model")
    save_every: int = option(0, "steps between checkpoints within an epoch; 0: at its end alone", least=0)
    timeout: float = option(600.0, "seconds after which a process that is not heard of is given up", above=0)
    tensorboard: bool = option(False, "write TensorBoard files too")

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        check(self)
        if self.model == "plain" and self.radius is not None:
            raise OptionError(f"radius expects a model that projects; received {self.radius} for the plain one.")
        if self.batch == 1:
            raise OptionError("batch expects 2 or more, or 0; received 1, which no batch normalisation can learn from.")

    def filled(self) -> Config:
        """Return the configuration with a value in the place of every 0 and "auto" but the device's and the feed's."""
        drawn = self.data == EMBEDDED
        size = self.size or (32 if drawn else 224)
        return dataclasses.replace(
            self,
            size=size,
            resize=self.resize or (size if drawn else round(size * 8 / 7)),
            least_area=self.least_area or (0.5 if drawn else 0.08),
            stem=self.stem if self.stem != "auto" else "imagenet" if size >= 128 else "medium",
            width=self.width or (16 if drawn else 64),
            stage=self.stage or max(1, math.ceil(self.epochs / 3)),
            batch=self.batch or (64 if drawn else 256),
            amp=self.amp if self.amp != "auto" else "on" if pick_device(self.device).type == "cuda" else "off",
        )


def what_decides(config: Config) -> dict[str, Any]:
    """Return the options that decide the result; a training may continue under others of how it is carried out."""
    free = ("data", "device", "workers", "save_every", "timeout", "tensorboard")
    return {key: value for key, value in to_dict(config).items() if key not in free}


def config_of(folder: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Return the configuration a run was started with, some of it overridden."""
    path = folder / "config.json"
    if not path.exists():
        raise OptionError(f"{folder} expects the folder of a finished `tacit image train`; it holds no config.json.")
    return build(Config, overrides={**read_json(path), **(overrides or {})})
