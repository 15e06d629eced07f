"""Table 3 of the paper: seven models beside each other, trained alike, over several seeds.

The plain models come first; the first seed's gives the radii of all the others, which follow.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.experiments.common.config import words_of
from tacit.experiments.common.files import read_json, write_json
from tacit.experiments.common.jobs import Job, results, run_jobs
from tacit.experiments.common.logs import read_log
from tacit.experiments.common.report import provenance, write_table
from tacit.experiments.image.config import Config, config_of, what_decides
from tacit.experiments.image.model import MODELS, norm_and_surface
from tacit.experiments.image.scale import scale

__all__ = ["MEASURES", "PAPER", "by_model", "collect", "run", "write"]

# Top-1, top-5 and mAP x 100 on ImageNet, of models trained from scratch.
PAPER = {
    "plain": (69.80, 89.26, 58.97),
    "l1-sphere": (69.92, 89.38, 62.72),
    "l2-sphere": (70.66, 89.60, 71.97),
    "linf-sphere": (70.03, 89.22, 63.98),
    "l1-ball": (70.17, 89.47, 61.26),
    "l2-ball": (70.59, 89.70, 72.43),
    "linf-ball": (70.06, 89.29, 63.33),
}

SEEDLESS = ("model", "radius", "seed")  # what differs between the runs of a table

# Column -> key of a result and factor.
MEASURES = {
    "top-1 %": ("top1", 100),
    "top-5 %": ("top5", 100),
    "mAP": ("map", 100),
    "mAP of scores": ("map_scores", 100),
    "ECE %": ("ece", 100),
    "NLL": ("nll", 1),
}


def run(
    config: Config,
    folder: Path,
    seeds: Sequence[int],
    *,
    models: Sequence[str] = tuple(MODELS),
    at_once: int = 1,
    limit: float | None = None,
) -> None:
    """Do what is not done yet of the table's runs, each in `folder/MODEL-seedN`.

    `at_once` at a time; after `limit` seconds they save and stop, and the same call goes on.
    """
    for name in models:
        norm_and_surface(name)  # complains of a name that does not exist
    begun, shared = time.monotonic(), ["image", "train", *words_of(config, SEEDLESS)]

    def job(model: str, seed: int, radius: float | None = None) -> Job:
        words = [*shared, "--model", model, "--seed", str(seed)] + ([] if radius is None else ["--radius", str(radius)])
        one = dataclasses.replace(config, model=model, seed=seed, radius=radius)
        return Job(f"{model}-seed{seed}", words, what_decides(one.filled()))

    write_json(folder / "table.json", provenance())
    plain = [job("plain", seed) for seed in seeds]
    done = run_jobs(plain, folder, workers=at_once, limit=limit)
    first = folder / plain[0].name
    if plain[0].name not in done:
        print(
            f"The radii are measured on {plain[0].name}, which is not finished. Call again when it is.", file=sys.stderr
        )
        return
    if not (first / "scale.json").exists():
        scale(config_of(first), first)
    radius = read_json(first / "scale.json")["radius"]
    others = [
        job(model, seed, float(f"{radius[model.partition('-')[0]]:.4g}"))
        for seed in seeds
        for model in models
        if model != "plain"
    ]
    left = None if limit is None else max(1.0, limit - (time.monotonic() - begun))
    run_jobs(others, folder, workers=at_once, limit=left)


def collect(folder: Path) -> dict[str, Any]:
    """Gather the results of all finished runs, with their logs, in `folder/results.json`; return what it holds.

    A folder that holds no runs, but this file, brought from elsewhere, is read.
    """
    names = sorted(path.parent.name for path in folder.glob("*-seed*/result.json"))
    whole = folder / "results.json"
    if not names:
        return dict(read_json(whole)) if whole.exists() else {}
    runs = results([Job(name, ()) for name in names], folder)
    for name, result in runs.items():
        result["log"] = read_log(folder / name)
    scales = {path.parent.name: read_json(path) for path in sorted(folder.glob("*/scale.json"))}
    made_by = folder / "table.json"
    command = read_json(made_by)["command"] if made_by.exists() else "tacit image train, run by run"
    found = {"command": command, "runs": runs, "scale": scales}
    write_json(whole, found)
    return found


def by_model(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the results of each model, in the table's order."""
    runs = sorted(found.get("runs", {}).values(), key=lambda result: result["config"]["seed"])
    grouped = {model: [r for r in runs if r["config"]["model"] == model] for model in MODELS}
    return {model: some for model, some in grouped.items() if some}


def write(found: dict[str, Any], stem: Path) -> None:
    """Write the table as `stem.md` and `stem.csv`: means over the seeds, with their standard deviation."""
    rows = []
    for model, runs in by_model(found).items():
        radius = runs[0]["config"]["radius"]
        cells = [_mean([factor * run[key] for run in runs]) for key, factor in MEASURES.values()]
        paper = [f"{value:.2f}" for value in PAPER[model]]
        rows.append([model, "" if radius is None else f"{radius:.4g}", len(runs), *cells, *paper])
    columns = ["ResNet-18", "radius", "seeds", *MEASURES, "paper: top-1 %", "top-5 %", "mAP"]
    write_table(stem, columns, rows, _about(found), "ResNet-18 with projected features")


def _about(found: dict[str, Any]) -> dict[str, Any]:
    """Return what the runs have in common: how the table was made, at which commit, at what scale."""
    runs = list(found["runs"].values())
    config, images = runs[0]["config"], runs[0]["images"]
    seeds = sorted({run["config"]["seed"] for run in runs})
    return {
        "command": found["command"],
        **{key: ", ".join(sorted({run["about"][key] for run in runs})) for key in ("commit", "versions", "device")},
        "seeds": ", ".join(map(str, seeds)) + " (± is the standard deviation over them)",
        "scale": f"{images['classes']} classes, {images['train']:,} training and {images['val']:,} validation images at "
        f"{config['size']} pixels, {config['epochs']} epochs, batch {config['batch']}",
        "radius": "2/3 of the median norm of the normalised training features of the plain model, first seed",
        "broken images left out": max(len(run["skipped"]) for run in runs),
        "paper": "ImageNet, 1,000 classes, 224 pixels, 90 epochs; one run a model",
    }


def _mean(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"
