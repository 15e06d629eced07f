"""What the examples share: a command line, and figures drawn twice, for light pages and for dark ones.

An example has three functions. `study(fast)` computes and returns a dict, `say(found)` puts it in words, and
`draw(ink, found)` returns a figure whose colours come from `ink`.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True)
class Ink:
    """Colours that can be read on one background: text, faint lines, the page itself, and a cycle of five."""

    text: str
    faint: str
    page: str
    colours: tuple[str, ...]

    def __getitem__(self, index: int) -> str:
        return self.colours[index % len(self.colours)]


LIGHT = Ink("#2b3136", "#c6ccd1", "#ffffff", ("#1769aa", "#c2410c", "#2e7d32", "#8e44ad", "#9a7400"))
DARK = Ink("#e2e4e9", "#4a4e5a", "#1e2129", ("#64b5f6", "#ff9466", "#81c784", "#ce93d8", "#e6c34d"))

HUNDREDTHS = re.compile(r'(?<=[ "])(-?\d+\.\d\d)\d+(?=[ "]|$)')
"""A coordinate with more digits than an eye can tell apart; they make up half of a figure's bytes."""


def settings(ink: Ink) -> dict[str, Any]:
    """What matplotlib is told: small transparent vector files, the same bytes for the same numbers."""
    from matplotlib import cycler

    text = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), ink.text)
    return {
        **text,
        "axes.prop_cycle": cycler(color=ink.colours),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10,
        "figure.constrained_layout.use": True,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "font.size": 9,
        "grid.color": ink.faint,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "svg.fonttype": "path",
        "svg.hashsalt": "tacit",
    }


def trend(panel: Any, values: list[float], colour: str, width: int = 15) -> None:
    """A noisy sequence, faint, and above it its mean over a moving window."""
    noisy = torch.tensor(values)
    panel.plot(noisy, color=colour, linewidth=0.6, alpha=0.5)
    means = noisy.unfold(0, min(width, len(noisy)), 1).mean(1)
    panel.plot(torch.arange(len(means)) + (len(noisy) - len(means)) / 2, means, color=colour)


def render(draw: Callable[[Ink, dict[str, Any]], Any], found: dict[str, Any], stem: Path) -> list[Path]:
    """Draw `stem-light.svg` and `stem-dark.svg`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, ink in (("light", LIGHT), ("dark", DARK)):
        with matplotlib.rc_context(settings(ink)):
            figure = draw(ink, found)
            path = stem.with_name(f"{stem.name}-{name}.svg")
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
        lines = (HUNDREDTHS.sub(r"\1", line.rstrip()) for line in path.read_text("utf-8").splitlines())
        path.write_text("\n".join(lines) + "\n", "utf-8")
        paths.append(path)
    return paths


def run(
    study: Callable[[bool], dict[str, Any]],
    say: Callable[[dict[str, Any]], str],
    draw: Callable[[Ink, dict[str, Any]], Any],
    out: Path,
    *,
    fast: bool = False,
) -> tuple[dict[str, Any], str]:
    """Compute, write the words to `out/NAME.txt` and the figure beside them; return what was found and said."""
    torch.manual_seed(0)
    name = Path(inspect.getfile(study)).stem
    found = study(fast)
    words = say(found).rstrip() + "\n"
    render(draw, found, out / name)
    (out / f"{name}.txt").write_text(words, "utf-8")
    return found, words


def present(
    study: Callable[[bool], dict[str, Any]],
    say: Callable[[dict[str, Any]], str],
    draw: Callable[[Ink, dict[str, Any]], Any],
) -> None:
    """The command line of an example."""
    parser = argparse.ArgumentParser(description=(inspect.getmodule(study).__doc__ or "").splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="fewer steps, for a quick look")
    parser.add_argument("--out", type=Path, default=Path("runs/examples"), help="where words and figures go")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(run(study, say, draw, options.out, fast=options.fast)[1], end="")
