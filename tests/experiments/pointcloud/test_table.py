"""A table is its runs: which ones, and how they are put together."""

from __future__ import annotations

import pytest

from tacit.experiments.common.errors import DataError
from tacit.experiments.common.files import write_json
from tacit.experiments.pointcloud.config import POOLINGS, Config
from tacit.experiments.pointcloud.table import collect, finished, jobs_of, table, write_report


def result(pooling, outliers, figures, seed=0):
    rows = [{"share": share, "top1": value, "mAP": value / 2} for share, value in figures.items()]
    about = {"command": "x", "seed": seed, "versions": "v"}
    return {
        "config": {"pooling": pooling, "outliers": outliers, "seed": seed, "alpha": 1.0, "points": 64},
        "rows": rows,
        "about": about,
    }


FOUND = {
    "a": result("max", 0.0, {0.0: 0.9, 0.5: 0.1}),
    "b": result("max", 0.0, {0.0: 0.8, 0.5: 0.2}, seed=1),
    "c": result("huber", 0.5, {0.5: 0.7}),
}


def test_the_clean_trainings_of_both_tables_are_the_same_runs():
    first, second = (jobs_of(name, Config(), list(POOLINGS), [0.0, 0.5], []) for name in "12")
    assert [job.name for job in first[:6]] == [job.name for job in second]
    assert [job.arguments for job in first[:6]] == [job.arguments for job in second]
    assert len(first) == 12 and len({job.name for job in first}) == 12


def test_a_job_hands_on_every_option_that_is_not_as_by_default():
    (job,) = jobs_of("2", Config(points=64, amp=True, shares=(0.0, 0.5)), ["huber"], [], ["--device", "cpu"])
    words = " ".join(job.arguments)
    for part in ("--pooling huber", "--points 64", "--amp", "--shares 0.0,0.5", "--device cpu"):
        assert part in words
    assert "--tf32" not in words and "--epochs" not in words


def test_shares_that_round_alike_are_runs_of_their_own():
    jobs = jobs_of("1", Config(), ["max"], [0.0, 0.001, 0.12, 0.125], [])
    assert [job.name for job in jobs] == [f"max-{share}pc-seed0" for share in ("0", "0.1", "12", "12.5")]


def test_a_job_knows_under_which_options_its_result_must_have_been_made():
    (job,) = jobs_of("1", Config(epochs=9), ["huber"], [0.1], [])
    assert (job.config["epochs"], job.config["pooling"], job.config["outliers"]) == (9, "huber", 0.1)


def test_cells_hold_a_figure_a_seed_and_only_runs_that_belong():
    assert table("2", FOUND)["max", 0.5, "top1"] == pytest.approx([10.0, 20.0])
    assert ("huber", 0.5, "top1") not in table("2", FOUND)
    assert table("1", FOUND) == {
        ("max", 0.0, "top1"): pytest.approx([90.0, 80.0]),
        ("max", 0.0, "mAP"): pytest.approx([45.0, 40.0]),
        ("huber", 0.5, "top1"): pytest.approx([70.0]),
        ("huber", 0.5, "mAP"): pytest.approx([35.0]),
    }


def test_the_report_has_our_means_above_the_papers_figures_and_the_provenance(tmp_path):
    write_report("2", FOUND, tmp_path)
    lines = (tmp_path / "table2.md").read_text().splitlines()
    cells = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines if line.startswith("| ")}
    assert cells["0%"] == "85.0" and cells["50%"] == "15.0" and cells["paper 50%"] == "4.9"
    assert "* seed: 0; 1" in lines
    assert "* command: `tacit pointcloud table 2 --points 64`" in lines
    assert (tmp_path / "table2.csv").exists()
    write_report("1", FOUND, tmp_path)
    assert "table 1 --points 64 --trained 0.0,0.5`" in (tmp_path / "table1.md").read_text()


def test_results_are_found_in_their_folders_and_in_a_collection(tmp_path):
    write_json(tmp_path / "c" / "result.json", FOUND["c"])
    collect({"a": FOUND["a"]}, tmp_path / "collected.json")
    assert finished(tmp_path) == {"a": FOUND["a"], "c": FOUND["c"]}


def test_nothing_finished_is_said(tmp_path):
    with pytest.raises(DataError, match="no finished run of table 2"):
        write_report("2", {}, tmp_path)
