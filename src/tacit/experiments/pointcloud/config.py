"""What a training is. The defaults are the paper's protocol."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import OptionError
from tacit.experiments.common.config import option

__all__ = ["POOLINGS", "SHARES", "Config"]

POOLINGS = ("max", "quadratic", "pseudo_huber", "huber", "welsch", "truncated_quadratic")
SHARES = (0.0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Config:
    """One training of PointNet and its test."""

    pooling: str = option("max", "what pools over the points", choices=POOLINGS)
    alpha: float = option(1.0, "scale of the robust penalty")
    points: int = option(2048, "points of a cloud that are used")
    batch: int = option(24, "clouds in a batch, over all processes")
    epochs: int = option(60, "passes over the training set")
    lr: float = option(0.01, "learning rate of stochastic gradient descent at the start")
    momentum: float = option(0.9, "momentum")
    weight_decay: float = option(0.0, "weight decay")
    decay: float = option(0.5, "factor on the learning rate ...")
    decay_every: int = option(20, "... every so many epochs")
    dropout: float = option(0.3, "share of features dropped before the last layer")
    outliers: float = option(0.0, "share of outliers in training")
    shares: tuple[float, ...] = option(SHARES, "shares of outliers in the test, with commas")
    test_every: int = option(1, "epochs between two tests in training, at the share of outliers it has")
    rotate: bool = option(False, "turn training clouds about the vertical axis")
    jitter: float = option(0.0, "noise on training points, standard deviation")
    clouds: int = option(0, "use only so many clouds of each split, evenly spread; 0: all")
    seed: int = option(0, "of the weights, the order, the outliers")
    amp: bool = option(False, "mixed precision (bfloat16)")
    tf32: bool = option(False, "TensorFloat-32 in products of matrices, on GPUs that have it")

    def __post_init__(self) -> None:
        for name in ("points", "batch", "epochs", "decay_every", "test_every"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} expects at least 1; received {getattr(self, name)}.")
        for name in ("lr", "alpha"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} expects a positive number; received {getattr(self, name)}.")
        for share in (self.outliers, *self.shares):
            if not 0 <= share <= 1:
                raise OptionError(f"A share of outliers is from 0 to 1; received {share}.")
