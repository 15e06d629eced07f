"""A model's test: top-1 accuracy and mean average precision over all classes, at each share of outliers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from tacit.experiments.common.checkpoint import read_checkpoint
from tacit.experiments.common.config import build
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import CheckpointError
from tacit.experiments.common.metrics import mean_average_precision, top_k
from tacit.experiments.pointcloud.batches import trial_batches
from tacit.experiments.pointcloud.config import Config
from tacit.experiments.pointcloud.data.clouds import Clouds
from tacit.experiments.pointcloud.model import PointNet

__all__ = ["load_model", "scores_of", "trial", "trials"]


def trials(
    model: torch.nn.Module, clouds: Clouds, config: Config, world: World, shares: Sequence[float] | None = None
) -> list[dict[str, float]]:
    """Return one row a share: `share`, `top1`, `mAP` (all from 0 to 1)."""
    chosen = config.shares if shares is None else shares
    return [{"share": share, **trial(model, clouds, config, world, share)} for share in chosen]


def trial(model: torch.nn.Module, clouds: Clouds, config: Config, world: World, share: float) -> dict[str, float]:
    """Return top-1 accuracy and mean average precision at one share of outliers."""
    scores = scores_of(model, clouds, config, world, share)
    return {"top1": top_k(scores, clouds.labels), "mAP": mean_average_precision(scores, clouds.labels)}


@torch.no_grad()
def scores_of(model: torch.nn.Module, clouds: Clouds, config: Config, world: World, share: float) -> torch.Tensor:
    """Return the probabilities of all classes for all clouds, (m, classes); the processes share the work."""
    training, parts = model.training, []
    model.eval()
    for batch in trial_batches(clouds, config, share):
        mine = world.share(len(batch.labels))
        scores = torch.zeros(len(batch.labels), len(clouds.classes), dtype=torch.float64, device=world.device)
        if mine.stop > mine.start:
            own = batch[mine]
            scores[mine] = model(own.points, own.mask).double().softmax(1)
        parts.append(scores)
    model.train(training)
    return world.sum(torch.cat(parts))


def load_model(path: Path, device: torch.device | str = "cpu") -> tuple[PointNet, Config, tuple[str, ...]]:
    """Return a trained model with its configuration and the names of its classes, from `model.pt` or its folder."""
    if path.is_dir() and not (path / "model.pt").exists():
        raise CheckpointError(f"{path} holds no model.pt, which a training leaves when it is finished.")
    path = path / "model.pt" if path.is_dir() else path
    state = read_checkpoint(path, device)
    if "classes" not in state:
        raise CheckpointError(f"{path} is a checkpoint of a training under way; a finished one leaves model.pt.")
    config = build(Config, overrides=state["config"])
    model = PointNet(len(state["classes"]), config.pooling, config.alpha, config.dropout).to(device)
    model.load_state_dict(state["model"])
    return model.eval(), config, tuple(state["classes"])
