"""Figures: accuracy and mean average precision against outliers, a gallery of clouds, what each pooling attends to.

Each function takes what it shows and a path; the suffix of the path is the format. They need matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tacit.experiments.common.figures import pyplot
from tacit.experiments.common.seeds import generator
from tacit.experiments.pointcloud.batches import Batch, draw
from tacit.experiments.pointcloud.config import POOLINGS
from tacit.experiments.pointcloud.data.clouds import Clouds
from tacit.experiments.pointcloud.model import PointNet
from tacit.experiments.pointcloud.outliers import with_outliers
from tacit.shapes import Float, Tensor

__all__ = ["attention", "curves", "draw_attention", "draw_gallery"]

NAMES = {
    name: name.replace("pseudo_", "pseudo-").replace("_", " ").replace("huber", "Huber").replace("welsch", "Welsch")
    for name in POOLINGS
}
COLOURS = dict(zip(POOLINGS, ("#c2410c", "#8a8f98", "#9a7400", "#1769aa", "#8e44ad", "#2e7d32")))
MARKS = dict(zip(POOLINGS, "osv^DX"))
SHOWN = 1024  # points of a cloud in a figure
Figures = Mapping[tuple[str, float, str], Sequence[float]]


def curves(
    cells: Figures, path: Path, paper: Mapping[tuple[str, float, str], float] | None = None, title: str = ""
) -> None:
    """Draw both metrics against the share of outliers, a line a pooling; the paper's own figures faintly behind.

    `cells` maps (pooling, share, "top1" or "mAP") to figures in %, one a seed; several show their spread.
    """
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.7), sharey=True, constrained_layout=True)
    for axis, metric, name in zip(axes, ("top1", "mAP"), ("top-1 accuracy in %", "mean average precision × 100")):
        for pooling in POOLINGS:
            shares = sorted({share for other, share, kind in cells if other == pooling and kind == metric})
            if not shares:
                continue
            values = torch.tensor([[*_summary(cells[pooling, share, metric])] for share in shares])
            at, colour = [100 * share for share in shares], COLOURS[pooling]
            label = NAMES[pooling] if metric == "top1" else None
            axis.plot(at, values[:, 1], color=colour, marker=MARKS[pooling], markersize=4, label=label)
            axis.fill_between(at, values[:, 0], values[:, 2], color=colour, alpha=0.2, linewidth=0)
            theirs = {
                share: value
                for (other, share, kind), value in (paper or {}).items()
                if (other, kind) == (pooling, metric)
            }
            axis.plot([100 * share for share in theirs], list(theirs.values()), color=colour, alpha=0.35, linestyle=":")
        axis.set(xlabel="outliers in %", title=name, ylim=(0, 102))
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    if paper:
        axes[1].plot([], [], color="#555555", alpha=0.6, linestyle=":", label="the paper's")
        axes[1].legend(frameon=False, fontsize=8)
    figure.suptitle(title)
    _save(figure, path)


def _summary(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), sum(values) / len(values), max(values)


def draw_gallery(clouds: Clouds, path: Path, shares: Sequence[float] = (0.0, 0.1, 0.5), columns: int = 7) -> None:
    """Draw a cloud a class (`columns` classes, evenly spread), a row a share; outliers are marked."""
    chosen, rows = _examples(clouds, columns)
    panels = []
    for share in shares:
        random = generator(0, "gallery", float(share))
        batch = draw(clouds, rows, SHOWN, random)
        cloud, replaced = with_outliers(batch.points, share, random, batch.mask)
        real = _real(batch)
        panels.append([(cloud[i, real[i]], replaced[i, real[i]].float()) for i in range(len(rows))])
    titles = [clouds.classes[label] for label in chosen]
    _grid(panels, titles, [f"{share:.0%} outliers" for share in shares], path, colours=("#4a6fa5", "#d1495b"))


def attention(model: PointNet, points: Float[Tensor, "n 3"], label: int) -> Float[Tensor, " n"]:
    """Return how much each point moves the score of a class: the norm of its gradient, the largest being 1."""
    model.eval()
    at = points.clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(model(at[None])[0, label], at)
    size = gradient.norm(dim=1)
    return size / size.amax().clamp(min=torch.finfo(size.dtype).tiny)


def draw_attention(
    models: Mapping[str, PointNet], clouds: Clouds, path: Path, share: float = 0.2, columns: int = 5
) -> None:
    """Draw the same clouds once a model, each point coloured by `attention`, outliers as rings."""
    chosen, rows = _examples(clouds, columns)
    random = generator(0, "attention")
    batch = draw(clouds, rows, SHOWN, random)
    spoilt, marked = with_outliers(batch.points, share, random, batch.mask)
    real = _real(batch)
    cloud, replaced = ([column[i, real[i]] for i in range(len(rows))] for column in (spoilt, marked))
    panels = []
    for model in models.values():
        panels.append([(cloud[i], attention(model, cloud[i], int(label))) for i, label in enumerate(chosen)])
    labels = [
        f"{NAMES.get(name, name)}\n{100 * _on(panel, replaced):.0f} % on outliers"
        for name, panel in zip(models, panels)
    ]
    _grid(panels, [clouds.classes[label] for label in chosen], labels, path, rings=replaced)


def _examples(clouds: Clouds, count: int) -> tuple[Tensor, Tensor]:
    """Return at most `count` of the classes that have a cloud, evenly spread, and the row of the first cloud of each."""
    present = clouds.labels.unique()
    classes = present[torch.linspace(0, len(present) - 1, min(count, len(present))).round().long()]
    return classes, torch.stack([(clouds.labels == label).nonzero()[0, 0] for label in classes])


def _real(batch: Batch) -> Tensor:
    """Return which points of a batch exist, (b, n)."""
    return torch.ones(batch.points.shape[:2], dtype=torch.bool) if batch.mask is None else batch.mask


def _on(panel: Sequence[tuple[Tensor, Tensor]], replaced: Sequence[Tensor]) -> float:
    """Return the share of all attention that falls on outliers; 0 where there is none at all."""
    on = sum(float(seen[replaced[i]].sum()) for i, (_, seen) in enumerate(panel))
    whole = sum(float(seen.sum()) for _, seen in panel)
    return on / whole if whole else 0.0


def _grid(
    panels: Sequence[Sequence[tuple[Tensor, Tensor]]],
    titles: Sequence[str],
    labels: Sequence[str],
    path: Path,
    colours: tuple[str, str] | None = None,
    rings: Sequence[Tensor] | None = None,
) -> None:
    """Draw clouds in rows and columns, seen from a little above; the second axis is up."""
    plt = pyplot()
    figure, axes = plt.subplots(
        len(panels),
        len(titles),
        figsize=(1.6 * len(titles) + 0.4, 1.65 * len(panels) + 0.3),
        subplot_kw={"projection": "3d"},
        squeeze=False,
    )
    figure.subplots_adjust(left=0.06, right=0.995, bottom=0.01, top=0.93, wspace=0, hspace=0)
    for i, (row, label) in enumerate(zip(axes, labels)):
        for j, (axis, (cloud, value)) in enumerate(zip(row, panels[i])):
            order = value.argsort()  # what matters most is drawn last
            x, y, z = cloud[order].T.numpy()
            shade = value[order].numpy()
            if colours:
                axis.scatter(x, z, y, s=1.5, c=[colours[int(v)] for v in shade], linewidths=0)
            else:
                axis.scatter(x, z, y, s=1 + 9 * shade, c=shade, cmap="viridis_r", vmin=0, vmax=1, linewidths=0)
            if rings is not None:
                seen = order[rings[j][order] & (value[order] > 0.3)]
                a, b, c = cloud[seen].T.numpy()
                axis.scatter(a, c, b, s=28, facecolors="none", edgecolors="#d1495b", linewidths=0.6)
            axis.set(xlim=(-0.75, 0.75), ylim=(-0.75, 0.75), zlim=(-0.75, 0.75))
            axis.view_init(18, -60)
            axis.set_box_aspect((1, 1, 1), zoom=1.25)
            axis.set_axis_off()
            if i == 0:
                axis.set_title(titles[j].replace("_", " "), fontsize=9, pad=0)
        height = 0.93 - (i + 0.5) * 0.92 / len(panels)
        figure.text(0.012, height, label, rotation=90, va="center", ha="left", fontsize=8.5, multialignment="center")
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot().close(figure)
