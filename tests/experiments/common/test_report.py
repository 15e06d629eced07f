"""A table carries what made it."""

from __future__ import annotations

import csv

from tacit.experiments.common.report import commit, markdown, provenance, write_table


def test_both_forms_hold_the_same_cells_and_the_provenance(tmp_path):
    about = provenance(seed=3, scale="2 epochs")
    write_table(tmp_path / "t", ["%", "max"], [[0, "88.4"], [10, "6.5"]], about, title="Trained clean")
    text = (tmp_path / "t.md").read_text()
    assert text.startswith("### Trained clean\n\n|")
    for fact in ("* seed: 3", "* scale: 2 epochs", f"* commit: `{commit()}`", "torch"):
        assert fact in text
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert list(csv.reader(line for line in lines if line[0] != "#")) == [["%", "max"], ["0", "88.4"], ["10", "6.5"]]
    assert "# seed: 3" in lines


def test_the_commit_can_be_told_where_there_is_no_checkout(monkeypatch):
    monkeypatch.setenv("TACIT_COMMIT", "abc1234")
    assert provenance()["commit"] == "abc1234"


def test_columns_are_aligned():
    lines = markdown(["a", "long name"], [["wide cell", 1]]).splitlines()
    assert len({len(line) for line in lines}) == 1
