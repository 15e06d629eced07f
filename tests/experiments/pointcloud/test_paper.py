"""The paper's figures, cell by cell where it matters."""

from __future__ import annotations

from tacit.experiments.pointcloud.config import POOLINGS, SHARES
from tacit.experiments.pointcloud.paper import PAPER


def test_every_cell_of_both_tables_is_there():
    assert len(PAPER["1"]) == 5 * 12 and len(PAPER["2"]) == 11 * 12
    assert {key[0] for key in PAPER["2"]} == set(POOLINGS)
    assert {key[1] for key in PAPER["2"]} == set(SHARES)


def test_figures_stand_under_their_pooling_and_metric():
    assert PAPER["2"]["max", 0.1, "top1"] == 6.47
    assert PAPER["2"]["truncated_quadratic", 0.5, "top1"] == 57.9
    assert PAPER["2"]["truncated_quadratic", 0.9, "mAP"] == 9.78
    assert PAPER["1"]["welsch", 0.9, "top1"] == 65.3
    assert PAPER["1"]["max", 0.9, "mAP"] == 38.9


def test_the_clean_row_is_the_same_in_both():
    clean = [{key: value for key, value in PAPER[table].items() if key[1] == 0} for table in "12"]
    assert clean[0] == clean[1]
