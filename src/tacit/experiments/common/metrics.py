"""How good scores are: top-k accuracy and average precision, exactly and over all classes.

Scores are `(n, classes)`, the higher the likelier; labels are `(n,)`.
"""

from __future__ import annotations

import torch

from tacit.shapes import Float, Int, Tensor

__all__ = ["average_precision", "mean_average_precision", "top_k"]


def top_k(scores: Float[Tensor, "n c"], labels: Int[Tensor, " n"], k: int = 1) -> float:
    """Return the share of rows whose label is among the k highest scores.

    >>> top_k(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1]))
    0.5
    """
    best = scores.topk(min(k, scores.shape[1]), dim=1).indices
    return (best == labels[:, None]).any(1).double().mean().item()


def average_precision(scores: Float[Tensor, "n c"], labels: Int[Tensor, " n"]) -> Float[Tensor, " c"]:
    """Return for each class the area under its precision-recall curve, class against rest.

        AP = sum_k (R_k - R_{k-1}) P_k        over the distinct scores, from the highest down

    Rows of equal score are one step of the curve. A class without a row has no recall: NaN.

    >>> average_precision(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]), torch.tensor([0, 1, 0]))
    tensor([0.8333, 0.5000], dtype=torch.float64)
    """
    ordered, order = scores.double().sort(0, descending=True)
    hits = labels[order] == torch.arange(scores.shape[1], device=labels.device)
    found = hits.cumsum(0).double()
    precision = found / torch.arange(1, len(scores) + 1, device=scores.device).double()[:, None]
    # Within a group of equal scores every hit has the precision at the group's end.
    ends = torch.ones_like(hits)
    ends[:-1] = ordered[1:] != ordered[:-1]
    rows = torch.arange(len(scores), device=scores.device)[:, None]
    end = torch.where(ends, rows, len(scores)).flip(0).cummin(0).values.flip(0)
    return (precision.gather(0, end) * hits).sum(0) / hits.sum(0)


def mean_average_precision(scores: Float[Tensor, "n c"], labels: Int[Tensor, " n"]) -> float:
    """Return the mean of `average_precision` over all classes that have a row.

    >>> round(mean_average_precision(torch.eye(3), torch.tensor([0, 1, 2])), 3)
    1.0
    """
    return average_precision(scores, labels).nanmean().item()
