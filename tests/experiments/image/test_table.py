"""The table is made run by run, each once; it is laid out as the paper's."""

from __future__ import annotations

import csv
import dataclasses

import pytest

from tacit.errors import OptionError
from tacit.experiments.common.config import to_dict
from tacit.experiments.common.errors import ConfigError
from tacit.experiments.common.files import read_json, write_json
from tacit.experiments.image import table
from tacit.experiments.image.config import Config
from tacit.experiments.image.model import MODELS

TINY = Config(images=20, epochs=1, batch=20, width=2, device="cpu", workers=1, size=8)


def made_up(model: str, seed: int, top1: float) -> dict:
    return {
        "config": {"model": model, "seed": seed, "radius": None if model == "plain" else 15.0, "size": 64}
        | {"epochs": 9, "batch": 256},
        "images": {"classes": 200, "train": 40000, "val": 10000},
        "skipped": [],
        **dict.fromkeys(("top5", "map", "map_scores", "ece", "nll"), 0.5),
        "top1": top1,
        "about": {"commit": "abc", "versions": "torch", "device": "cpu"},
    }


def found(**changed: float) -> dict:
    runs = {f"{m}-seed{s}": made_up(m, s, 0.4 + 0.02 * s) for m in ("l2-ball", "plain") for s in (0, 1)}
    return {"command": "tacit image table", "runs": runs, "scale": {}}


def test_the_papers_figures_are_those_of_seven_models():
    assert set(table.PAPER) == set(MODELS) and len(MODELS) == 7
    assert max(table.PAPER, key=lambda model: table.PAPER[model][2]) == "l2-ball"


def test_rows_are_means_over_the_seeds_with_their_spread(tmp_path):
    table.write(found(), tmp_path / "table3")
    lines = [line for line in (tmp_path / "table3.csv").read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert [row["ResNet-18"] for row in rows] == ["plain", "l2-ball"]
    assert rows[0]["top-1 %"] == "41.00 ± 1.41" and rows[1]["radius"] == "15" and rows[1]["seeds"] == "2"
    text = (tmp_path / "table3.md").read_text()
    assert "`tacit image table`" in text and "`abc`" in text and "9 epochs" in text and "72.43" in text


def test_results_that_were_brought_along_are_read(tmp_path):
    assert table.collect(tmp_path) == {}
    write_json(tmp_path / "results.json", found())
    assert table.collect(tmp_path) == found()


def test_a_model_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(OptionError, match="Did you mean 'l2-ball'"):
        table.run(TINY, tmp_path, [0], models=["l2-bal"])


def test_a_finished_run_of_other_options_is_not_taken_for_this_table(tmp_path):
    done = dataclasses.replace(TINY, epochs=3).filled()
    write_json(tmp_path / "plain-seed0" / "result.json", {"config": to_dict(done)})
    with pytest.raises(ConfigError, match=r"plain-seed0 is finished, under other options: epochs was 3 and is 1"):
        table.run(TINY, tmp_path, [0])


@pytest.mark.slow
def test_a_table_is_made_from_nothing_and_no_run_is_repeated(tmp_path):
    table.run(TINY, tmp_path, [0], models=["plain", "l2-ball"], at_once=2)
    made = table.collect(tmp_path)
    assert set(made["runs"]) == {"plain-seed0", "l2-ball-seed0"}
    measured = read_json(tmp_path / "plain-seed0" / "scale.json")["radius"]["l2"]
    assert made["runs"]["l2-ball-seed0"]["config"]["radius"] == pytest.approx(measured, rel=1e-3)
    assert len(made["runs"]["plain-seed0"]["log"]) == 1
    before = (tmp_path / "plain-seed0" / "result.json").stat().st_mtime_ns
    table.run(TINY, tmp_path, [0], models=["plain", "l2-ball"])
    assert (tmp_path / "plain-seed0" / "result.json").stat().st_mtime_ns == before
