"""PointNet without transforms: a map of each point, a pooling over the points, a classifier. 0.8 M parameters.

    64-64-64-128-1024 a point, each with batch normalisation  ->  pooling  ->  512-256-classes with dropout

The pooling is the only place where points meet: max, or the argmin of a robust penalty, one channel at a time.
"""

from __future__ import annotations

import torch

from tacit.nn import RobustPool
from tacit.shapes import Bool, Float, Tensor

__all__ = ["MaxPool", "PointNet", "pooling_of"]


class MaxPool(torch.nn.Module):
    """The largest number along the last dim."""

    def forward(self, x: Float[Tensor, "b c n"], weight: Float[Tensor, "b 1 n"] | None = None) -> Float[Tensor, "b c"]:
        """Return the maximum of `x`; what has weight 0 does not exist."""
        return (x if weight is None else x.masked_fill(weight == 0, -torch.inf)).amax(-1)


def pooling_of(name: str, alpha: float) -> torch.nn.Module:
    """Return the pooling of that name: "max", or a penalty of `tacit.nn.RobustPool`."""
    return MaxPool() if name == "max" else RobustPool(name, alpha=alpha)


class PointNet(torch.nn.Module):
    """Scores of classes for clouds of points.

    >>> model = PointNet(40, "huber")
    >>> sum(parameter.numel() for parameter in model.parameters())
    819624
    >>> model(torch.randn(2, 128, 3)).shape
    torch.Size([2, 40])
    """

    def __init__(self, classes: int, pooling: str = "max", alpha: float = 1.0, dropout: float = 0.3) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            *(
                self._layer(torch.nn.Conv1d(i, o, 1), o)
                for i, o in ((3, 64), (64, 64), (64, 64), (64, 128), (128, 1024))
            )
        )
        self.pool = pooling_of(pooling, alpha)
        self.classifier = torch.nn.Sequential(
            self._layer(torch.nn.Linear(1024, 512), 512),
            self._layer(torch.nn.Linear(512, 256), 256),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(256, classes),
        )

    @staticmethod
    def _layer(linear: torch.nn.Module, width: int) -> torch.nn.Sequential:
        return torch.nn.Sequential(linear, torch.nn.BatchNorm1d(width), torch.nn.ReLU(inplace=True))

    def forward(self, points: Float[Tensor, "b n 3"], mask: Bool[Tensor, "b n"] | None = None) -> Float[Tensor, "b k"]:
        """Return the scores; points whose `mask` is False do not exist, for the batch normalisation neither."""
        if mask is None:
            return self.classifier(self.pool(self.features(points.transpose(1, 2))))
        real = self.features(points[mask].T[None])[0]  # all points of the batch as one long cloud: (c, total)
        padded = real.new_zeros(*mask.shape, real.shape[0])
        padded[mask] = real.T
        return self.classifier(self.pool(padded.transpose(1, 2), weight=mask[:, None].to(real.dtype)))
