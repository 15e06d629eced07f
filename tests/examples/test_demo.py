"""The demo: four poolings are trained and tested, the table is whole, the figure drawn, and the sentence is of this run."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


def test_the_demo_trains_tests_draws_says_what_it_shows_and_does_not_train_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo.py", "--epochs", "1", "--points", "16", "--out", str(tmp_path)])
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    said, made = [], []
    for _ in range(2):
        demo.main()
        said.append(capsys.readouterr().out)
        made.append({path: path.stat().st_mtime_ns for path in tmp_path.glob("*/result.json")})
    assert said[0] == said[1]
    assert len(made[0]) == 4 and made[0] == made[1]

    table = [line for line in said[0].splitlines() if line.startswith("|")]
    assert len(table) == 2 + 9
    assert all(0 <= float(cell) <= 100 for line in table[2:] for cell in line.split("|")[2:6])
    at_30 = next(line for line in table if line.startswith("| 30%"))
    at_30 = [float(cell) for cell in at_30.split("|")[2:6]]
    words = re.search(r"still tells (\d+) % .*max pooling (\d+) %", said[0].splitlines()[-1])
    assert abs(int(words[1]) - max(at_30)) < 0.6 and abs(int(words[2]) - at_30[0]) < 0.6
    assert (tmp_path / "demo.png").stat().st_size > 1000
