"""The radius that makes the projection matter and not too much, measured on a trained plain model. DDN[feature-projection].

    r_p = 2/3 median_i ||N(f_i)||_p

f_i are the features of training images before the classifier, N the batch normalisation over all of them. On ImageNet
the paper finds 250, 15 and 3 for p = 1, 2 and infinity. It speaks of scaling features by that number before a unit
ball; here it is the ball's radius.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from tacit.errors import OptionError
from tacit.experiments.common.distributed import World
from tacit.experiments.common.files import write_json
from tacit.experiments.image.config import Config
from tacit.experiments.image.evaluate import of_all
from tacit.experiments.image.train import feed_of, image_sets, trained_model
from tacit.functions.norms import lp_norm
from tacit.shapes import Float, Tensor

__all__ = ["NORMS", "radii", "scale"]

NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


def radii(features: Float[Tensor, "n m"]) -> dict[str, float]:
    """Return 2/3 of the median norm of the batch-normalised features, for p = 1, 2 and infinity."""
    normal = torch.nn.functional.batch_norm(features, None, None, training=True)
    return {name: lp_norm(normal, p).median().item() * 2 / 3 for name, p in NORMS.items()}


@torch.no_grad()
def scale(config: Config, folder: Path) -> dict[str, Any]:
    """Measure the radii on the plain model trained in `folder`; write `folder/scale.json` and return what it holds.

    The training images are looked at as validation would: their central squares.
    """
    if config.model != "plain":
        raise OptionError(f"scale expects a run of the plain model; {folder} holds {config.model!r}.")
    config = config.filled()
    with World.start(config.device, config.timeout) as world:
        train_set, _ = image_sets(config)
        feed = feed_of(train_set, config, world)
        model = trained_model(config, folder, train_set.classes, world.device).eval()
        own = [model.features(shown).float() for shown, _ in feed.validation()]
        features = of_all(torch.cat(own), world)
        found = {"images": len(features), "features": features.shape[1], "radius": radii(features)}
        if world.first:
            write_json(folder / "scale.json", found)
    return found
