"""The paper's tables as many independent trainings, each in a folder of its own, and the report of what is there.

Table 2 trains each pooling on clean clouds and tests it at eleven shares of outliers; table 1 trains and tests at the
same share. The clean trainings are the same in both, and are done once.
"""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import OptionError
from tacit.experiments.common.config import build, to_dict, words_of
from tacit.experiments.common.errors import DataError
from tacit.experiments.common.files import read_json, write_json
from tacit.experiments.common.jobs import Job, run_jobs
from tacit.experiments.common.report import markdown, write_table
from tacit.experiments.pointcloud.config import POOLINGS, SHARES, Config
from tacit.experiments.pointcloud.paper import PAPER

__all__ = ["TABLES", "TRAINED", "collect", "finished", "jobs_of", "run", "table", "write_report"]

TABLES = ("1", "2")
TRAINED = (0.0, 0.1, 0.2, 0.5, 0.9)  # the shares of table 1
SHORT = {
    "max": "max",
    "quadratic": "Q",
    "pseudo_huber": "PH",
    "huber": "H",
    "welsch": "W",
    "truncated_quadratic": "TQ",
}
Figures = Mapping[tuple[str, float, str], float]


def run(table: str, config: Config, arguments: argparse.Namespace) -> dict[str, Any]:
    """Do what is not done of a table, as the command's arguments say; return the results there are, by run."""
    for name, instead in (("pooling", "poolings"), ("outliers", "trained")):
        if hasattr(arguments, name):
            raise OptionError(f"table sets --{name} itself, run by run; use --{instead}.")
    poolings, trained = list(arguments.poolings), list(arguments.trained)
    if not arguments.no_run:
        how = ["--device", arguments.device, *(["--data", arguments.data] if arguments.data else []), "--quiet"]
        jobs = jobs_of(table, config, poolings, trained, how)
        run_jobs(jobs, arguments.folder, workers=arguments.at_once, limit=arguments.time_limit)
    return finished(arguments.folder)


def jobs_of(table: str, config: Config, poolings: list[str], trained: list[float], how: list[str]) -> list[Job]:
    """Return the trainings a table needs, the least outliers first."""
    jobs = []
    for share in [0.0] if table == "2" else trained:
        for pooling in poolings:
            shares = config.shares if share == 0 else (share,)
            one = dataclasses.replace(config, pooling=pooling, outliers=share, shares=shares)
            name = f"{pooling}-{100 * share:g}pc-seed{config.seed}"
            jobs.append(Job(name, ["pointcloud", "train", *words_of(one), *how], to_dict(one)))
    return jobs


def finished(folder: Path) -> dict[str, Any]:
    """Return all results in a folder, by the name of the run: those of its runs, and those in `collected.json`."""
    collected = folder / "collected.json"
    found: dict[str, Any] = read_json(collected) if collected.exists() else {}
    found.update({path.parent.name: read_json(path) for path in sorted(folder.glob("*/result.json"))})
    return found


def collect(found: Mapping[str, Any], path: Path) -> None:
    """Write results into one file; named `collected.json` in a folder, it stands for the runs it came from."""
    write_json(path, found)


def table(name: str, found: Mapping[str, Any]) -> dict[tuple[str, float, str], list[float]]:
    """Return (pooling, share, metric) -> figures in %, one a seed."""
    cells: dict[tuple[str, float, str], list[float]] = {}
    for result in found.values():
        config = result["config"]
        for row in result["rows"]:
            if config["outliers"] == (row["share"] if name == "1" else 0):
                for metric in ("top1", "mAP"):
                    cells.setdefault((config["pooling"], row["share"], metric), []).append(100 * row[metric])
    return cells


def write_report(name: str, found: Mapping[str, Any], folder: Path) -> str:
    """Write `tableN.md` and `.csv`, laid out as the paper's with the paper's figures below; return the table as text."""
    cells = table(name, found)
    if not cells:
        raise DataError(f"{folder} holds no finished run of table {name}.")
    ours = {key: statistics.mean(values) for key, values in cells.items()}
    title = {"1": "The same share of outliers in training and test", "2": "Outliers in the test alone"}[name]
    columns = ["outliers"] + [f"{short} {metric}" for metric in ("top-1", "mAP") for short in SHORT.values()]
    rows = [*_rows("", ours, ours), *_rows("paper ", PAPER[name], ours)]
    about = _about(name, found)
    write_table(folder / f"table{name}", columns, rows, about, title)
    return f"{title}\n\n{markdown(columns, rows)}\n\n{folder / f'table{name}.md'}"


def _rows(prefix: str, figures: Figures, ours: Figures) -> list[list[str]]:
    shares = sorted({share for _, share, _ in ours if share in (*SHARES, *TRAINED) or not prefix})
    lines = []
    for share in shares:
        keys = [(pooling, share, metric) for metric in ("top1", "mAP") for pooling in POOLINGS]
        lines.append([f"{prefix}{100 * share:g}%", *(f"{figures[key]:.1f}" if key in figures else "" for key in keys)])
    return [line for line in lines if any(line[1:])]


def _about(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of the runs in a table; a fact in which they differ is listed with all its values."""
    facts: dict[str, list[str]] = {"command": []}
    shares = sorted({result["config"]["outliers"] for result in found.values()})
    trained = ["--trained", ",".join(map(str, shares))] if name == "1" and tuple(shares) != TRAINED else []
    for result in found.values():
        config = build(Config, overrides=result["config"])
        if name == "2" and config.outliers > 0:
            continue
        words = [*words_of(config, without=("pooling", "outliers", "shares", "seed")), *trained]
        facts["command"].append(shlex.join(["tacit", "pointcloud", "table", name, *words]))
        for key, value in result["about"].items():
            if key != "command":
                facts.setdefault(key, []).append(str(value))
    return {key: "; ".join(dict.fromkeys(values)) for key, values in facts.items()}
