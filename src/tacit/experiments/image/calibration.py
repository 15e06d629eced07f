"""Whether confidence is deserved: of the predictions made with confidence 0.8, four out of five should be right.

ECE = sum_b n_b / n |accuracy_b - confidence_b|        over bins of equal width of the highest probability
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.shapes import Float, Int, Tensor

__all__ = ["Reliability", "reliability"]


@dataclass(frozen=True)
class Reliability:
    """Predictions in bins of confidence; the means of an empty bin are 0."""

    count: Int[Tensor, " bins"]
    confidence: Float[Tensor, " bins"]
    accuracy: Float[Tensor, " bins"]

    def error(self) -> float:
        """Return the expected calibration error."""
        share = self.count.double() / self.count.sum()
        return (share * (self.accuracy - self.confidence).abs()).sum().item()


def reliability(scores: Float[Tensor, "n c"], labels: Int[Tensor, " n"], bins: int = 15) -> Reliability:
    """Return how often predictions of each confidence are right; a confidence on a border counts below it.

    >>> reliability(torch.tensor([[0.0, 9.0], [0.0, 9.0]]), torch.tensor([1, 0]), bins=2).accuracy
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    confidence, best = scores.double().softmax(1).max(1)
    place = ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1)
    zero = confidence.new_zeros(bins)
    count = torch.zeros(bins, dtype=torch.int64, device=scores.device).index_add_(0, place, torch.ones_like(place))
    some = count.clamp_min(1)
    return Reliability(
        count,
        zero.index_add(0, place, confidence) / some,
        zero.index_add(0, place, (best == labels).double()) / some,
    )
