"""Figures of table 3: what a projection changes, seed by seed, and whether confidence is deserved."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from tacit.experiments.common.errors import DataError
from tacit.experiments.common.figures import pyplot
from tacit.experiments.image.table import PAPER, by_model

__all__ = ["draw", "pooled"]

INK, FAINT, PLAIN, PROJECTED, OTHER = "#2b3136", "#c6ccd1", "#6b7280", "#1769aa", "#c2410c"

Runs = dict[str, list[dict[str, Any]]]


def draw(found: dict[str, Any], folder: Path) -> list[Path]:
    """Draw `measures.svg` and `reliability.svg` from what `collect` gathered; return where they are."""
    runs = by_model(found)
    if not runs:
        raise DataError("There are no finished runs to draw. Train some first: tacit image table")
    plt = pyplot()
    style: dict[Any, Any] = {
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), INK),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10,
        "figure.constrained_layout.use": True,
        "font.size": 9,
        "legend.frameon": False,
        "svg.hashsalt": "tacit",
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure_of in (("measures", _measures), ("reliability", _reliability)):
        with plt.rc_context(style):
            figure = figure_of(plt, runs)
            paths.append(folder / f"{name}.svg")
            figure.savefig(paths[-1], metadata={"Date": None})
            plt.close(figure)
    return paths


def _measures(plt: Any, runs: Runs) -> Any:
    """One dot a seed, a tick at the mean: top-1, mAP, calibration; and the gain in mAP beside the paper's."""
    figure, axes = plt.subplots(1, 4, figsize=(10.5, 0.9 + 0.36 * len(runs)), sharey=True)
    places = range(len(runs), 0, -1)
    axes[0].set_yticks(list(places), list(runs))
    for axis, title, keys in (
        (axes[0], "top-1 %", ("top1",)),
        (axes[1], "mAP × 100", ("map", "map_scores")),
        (axes[2], "calibration error (ECE) %", ("ece",)),
    ):
        for key in keys:
            for place, (model, some) in zip(places, runs.items()):
                colour = OTHER if key == "map_scores" else PLAIN if model == "plain" else PROJECTED
                values = [100 * run[key] for run in some]
                axis.plot(values, [place] * len(values), "o", color=colour, alpha=0.5, markersize=5, mew=0)
                axis.plot(statistics.mean(values), place, "|", color=colour, markersize=14, mew=2)
        axis.set_title(title)
    _legend(axes[1], ((PROJECTED, "by probability"), (OTHER, "by score")))
    if "plain" in runs:
        base = {key: statistics.mean(run[key] for run in runs["plain"]) for key in ("map", "map_scores")}
        for place, (model, some) in zip(places, runs.items()):
            gains = [100 * (statistics.mean(run[key] for run in some) - base[key]) for key in base]
            marks = ((gains[0], PROJECTED), (gains[1], OTHER), (PAPER[model][2] - PAPER["plain"][2], INK))
            for gain, colour in marks if model != "plain" else ():
                axes[3].plot(gain, place, "D" if colour == INK else "o", color=colour, markersize=5, mew=0)
    axes[3].axvline(0, color=FAINT, linewidth=1)
    axes[3].set_title("gain in mAP over plain")
    _legend(axes[3], ((PROJECTED, "by probability"), (OTHER, "by score"), (INK, "the paper")))
    for axis in axes:
        axis.grid(axis="x", color=FAINT, linewidth=0.5)
        axis.set_axisbelow(True)
        axis.set_ylim(0.4, len(runs) + 0.6)
    return figure


def _legend(axis: Any, entries: tuple[tuple[str, str], ...]) -> None:
    marks = [axis.plot([], [], "D" if colour == INK else "o", color=colour, markersize=5)[0] for colour, _ in entries]
    axis.legend(marks, [word for _, word in entries], loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize=8)


def pooled(some: list[dict[str, Any]]) -> tuple[list[float], list[float], list[int]]:
    """Return confidence, accuracy and count of each bin that holds a prediction, over all seeds.

    >>> one = {"reliability": {"count": [0, 2], "confidence": [0.0, 0.8], "accuracy": [0.0, 0.5]}}
    >>> pooled([one, one])
    ([0.8], [0.5], [4])
    """
    confidence, accuracy, count = [], [], []
    for bins in zip(*(zip(*(run["reliability"][k] for k in ("count", "confidence", "accuracy"))) for run in some)):
        total = sum(n for n, _, _ in bins)
        if total:
            count.append(total)
            confidence.append(sum(n * c for n, c, _ in bins) / total)
            accuracy.append(sum(n * a for n, _, a in bins) / total)
    return confidence, accuracy, count


def _reliability(plt: Any, runs: Runs) -> Any:
    """Accuracy against confidence, one panel a model; a dot's area is the share of predictions it stands for."""
    rows = (len(runs) + 3) // 4
    figure, axes = plt.subplots(rows, 4, figsize=(10.5, 2.8 * rows), sharex=True, sharey=True, squeeze=False)
    for axis, (model, some) in zip(axes.flat, runs.items()):
        confidence, accuracy, count = pooled(some)
        colour = PLAIN if model == "plain" else PROJECTED
        axis.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
        axis.plot(confidence, accuracy, color=colour, linewidth=1.4)
        axis.scatter(
            confidence, accuracy, [600 * n / sum(count) for n in count], color=colour, alpha=0.35, linewidths=0
        )
        error = 100 * statistics.mean(run["ece"] for run in some)
        axis.set_title(f"{model}   ECE {error:.1f} %")
        axis.set_aspect("equal")
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
    for axis in list(axes.flat)[len(runs) :]:
        axis.set_visible(False)
    figure.supxlabel("confidence")
    figure.supylabel("accuracy")
    return figure
