"""What a training is. The defaults are the paper's protocol."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.experiments.common.config import check, option

__all__ = ["POOLINGS", "SHARES", "Config"]

POOLINGS = ("max", "quadratic", "pseudo_huber", "huber", "welsch", "truncated_quadratic")
SHARES = (0.0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Config:
    """One training of PointNet and its test."""

    pooling: str = option("max", "what pools over the points", choices=POOLINGS)
    alpha: float = option(1.0, "scale of the robust penalty", above=0)
    points: int = option(2048, "points of a cloud that are used", least=1)
    batch: int = option(24, "clouds in a batch, over all processes", least=2)
    epochs: int = option(60, "passes over the training set", least=1)
    lr: float = option(0.01, "learning rate of stochastic gradient descent at the start", above=0)
    momentum: float = option(0.9, "momentum", least=0, below=1)
    weight_decay: float = option(0.0, "weight decay", least=0)
    decay: float = option(0.5, "factor on the learning rate ...", above=0, most=1)
    decay_every: int = option(20, "... every so many epochs", least=1)
    dropout: float = option(0.3, "share of features dropped before the last layer", least=0, below=1)
    outliers: float = option(0.0, "share of outliers in training", least=0, most=1)
    shares: tuple[float, ...] = option(SHARES, "shares of outliers in the test, with commas", least=0, most=1)
    test_every: int = option(1, "epochs between two tests in training, at the share of outliers it has", least=1)
    rotate: bool = option(False, "turn training clouds about their second axis")
    jitter: float = option(0.0, "noise on training points, standard deviation", least=0)
    clouds: int = option(0, "use only so many clouds of each split, evenly spread; 0: all", least=0)
    seed: int = option(0, "of the weights, the order, the outliers")
    amp: bool = option(False, "mixed precision (bfloat16)")
    tf32: bool = option(False, "TensorFloat-32 in products of matrices, on GPUs that have it")

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        check(self)
