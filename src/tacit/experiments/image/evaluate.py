"""What is measured on the validation images: table 3's columns, and calibration.

The paper does not say whether average precision ranks images by probability or by score, the number before the softmax,
which is not comparable between images unless something bounds it. Both are measured.
"""

from __future__ import annotations

from typing import Any

import torch

from tacit.experiments.common.distributed import World
from tacit.experiments.common.metrics import mean_average_precision, top_k
from tacit.experiments.image.calibration import reliability
from tacit.experiments.image.feed import Feed
from tacit.shapes import Float, Int, Tensor

__all__ = ["measure", "of_all", "scores_of"]


@torch.no_grad()
def scores_of(model: torch.nn.Module, feed: Feed) -> tuple[Float[Tensor, "n c"], Int[Tensor, " n"]]:
    """Return scores and labels of every validation image, of all processes; in full precision."""
    model.eval()
    with torch.autocast(feed.world.device.type, enabled=False):
        parts = [(model(images).float(), labels) for images, labels in feed.validation()]
    if not parts:  # more processes than images
        parts = [(torch.zeros(0, len(feed.images.classes)), torch.zeros(0, dtype=torch.int64))]
    scores, labels = (torch.cat(column).to(feed.world.device) for column in zip(*parts))
    return of_all(scores, feed.world), of_all(labels, feed.world)


def of_all(rows: Tensor, world: World) -> Tensor:
    """Return the rows of all processes, one process after the other."""
    if world.size == 1:
        return rows
    counts = torch.zeros(world.size, dtype=torch.int64, device=rows.device)
    counts[world.rank] = len(rows)
    ends = world.sum(counts).cumsum(0)
    every = rows.new_zeros(int(ends[-1]), *rows.shape[1:])
    end = int(ends[world.rank])
    every[end - len(rows) : end] = rows
    return world.sum(every)


def measure(scores: Float[Tensor, "n c"], labels: Int[Tensor, " n"]) -> dict[str, Any]:
    """Return the measures as plain numbers, and the bins of the reliability diagram as lists."""
    logs = scores.double().log_softmax(1)
    bins = reliability(scores, labels)
    return {
        "top1": top_k(scores, labels, 1),
        "top5": top_k(scores, labels, 5),
        "map": mean_average_precision(logs.exp(), labels),
        "map_scores": mean_average_precision(scores, labels),
        "ece": bins.error(),
        "nll": -logs.gather(1, labels[:, None]).mean().item(),
        "confidence": logs.max(1).values.exp().mean().item(),
        "reliability": {name: getattr(bins, name).tolist() for name in ("count", "confidence", "accuracy")},
    }
