"""Robust pooling against outliers: PointNet is trained on clean shapes with four poolings and tested on spoilt ones.

Nothing is fetched: the shapes are made here. Training is short (a few minutes on two cores for all four); Ctrl-C stops
it, and the same command goes on. The poolings have no parameters: the networks differ in what they do at one place,
where 128 points become one vector. Run it with `make demo`.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import torch

from tacit.errors import TacitError
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import Interrupted
from tacit.experiments.common.report import markdown
from tacit.experiments.pointcloud.config import Config
from tacit.experiments.pointcloud.data.embedded import embedded
from tacit.experiments.pointcloud.plots import NAMES, curves
from tacit.experiments.pointcloud.train import train

POOLINGS = ("max", "huber", "welsch", "truncated_quadratic")
SHARES = tuple(tenth / 10 for tenth in range(9))


def main() -> None:
    """Train, test, print the table, draw the figure, and say what it shows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--points", type=int, default=128)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    options = parser.parse_args()

    base = Config(
        points=options.points,
        epochs=options.epochs,
        decay_every=max(1, options.epochs // 3),
        test_every=options.epochs,
        shares=SHARES,
    )
    train_set, test_set = embedded(train=1560, test=520, points=2 * options.points)
    world = World(torch.device("cpu"))
    top1 = {}
    for pooling in POOLINGS:
        config = dataclasses.replace(base, pooling=pooling)
        folder = options.out / f"{pooling}-{options.epochs}x{options.points}"
        result = train(train_set, test_set, config, folder, world, resume=True)
        for row in result["rows"]:
            for metric in ("top1", "mAP"):
                top1[pooling, row["share"], metric] = [100 * row[metric]]

    def accuracy(pooling: str, share: float) -> float:
        return top1[pooling, share, "top1"][0]

    rows = [[f"{share:.0%}", *(f"{accuracy(pooling, share):.1f}" for pooling in POOLINGS)] for share in SHARES]
    print(
        f"\nTop-1 accuracy in % on {len(test_set)} clouds of {len(test_set.classes)} classes, trained without outliers:\n"
    )
    print(markdown(["outliers", *(NAMES[pooling] for pooling in POOLINGS)], rows))
    figure = options.out / "demo.png"
    curves(top1, figure, title="Trained without outliers")
    share = 0.3
    best = max(POOLINGS, key=lambda pooling: accuracy(pooling, share))
    print(f"\nfigure: {figure}   (remove {options.out} to train anew)\n")
    print(
        f"When {share:.0%} of the points are outliers never seen in training, {NAMES[best]} pooling still tells "
        f"{accuracy(best, share):.0f} % of the shapes ({accuracy(best, 0):.0f} % when clean), max pooling "
        f"{accuracy('max', share):.0f} % ({accuracy('max', 0):.0f} % when clean)."
    )


if __name__ == "__main__":
    try:
        main()
    except Interrupted as stopped:
        raise SystemExit(f"\nStopped and saved; the same command goes on. ({stopped})") from None
    except TacitError as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from None
