"""Every script in `examples/` runs, says something, and draws its figure twice; what it wrote is what the pages show."""

from __future__ import annotations

import importlib
import math
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
HELPERS = {"drawing", "learning", "measuring", "demo"}  # demo has a command line and a test of its own
SCRIPTS = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in HELPERS)
SLOW = {"envelope", "line_ransac", "pnp", "regularisation"}
"""Scripts that take more than a few seconds even in the fast mode."""

SCREEN = 130
"""Lines of a script that can still be read in one go."""


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    yield importlib.import_module
    for name in [*SCRIPTS, *HELPERS]:
        sys.modules.pop(name, None)


def marked(name):
    return pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name


@pytest.mark.parametrize("name", [marked(name) for name in SCRIPTS])
def test_the_script_runs_and_draws_twice(name, example, tmp_path):
    script = example(name)
    found, words = example("drawing").run(script.study, script.say, script.draw, tmp_path, fast=True)
    assert words.strip() and "nan" not in words.split() and "inf" not in words.split()
    assert (tmp_path / f"{name}.txt").read_text("utf-8") == words
    for shade in ("light", "dark"):
        assert well_formed(tmp_path / f"{name}-{shade}.svg") < 100_000
    assert not broken(found)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_figure_is_kept_and_some_page_shows_it_with_its_words(name):
    for shade in ("light", "dark"):
        assert well_formed(FIGURES / f"{name}-{shade}.svg") < 100_000, "run `make figures`"
    assert (FIGURES / f"{name}.txt").read_text("utf-8").strip()
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    for needed in (f"figures/{name}-light.svg", f"figures/{name}-dark.svg", f"docs/figures/{name}.txt"):
        assert needed in pages, f"no page shows {needed}"


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_can_be_read_in_one_go(name):
    text = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    assert len(text.splitlines()) <= SCREEN
    assert re.search(r"def study\(fast: bool\)", text) and "present(study, say, draw)" in text


def test_no_figure_is_left_of_a_script_that_is_gone():
    kept = {re.sub(r"(-light|-dark)?\.(svg|txt)$", "", path.name) for path in FIGURES.iterdir()}
    assert kept <= set(SCRIPTS)


def well_formed(path):
    """The size of an svg file, once it has been read."""
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    return path.stat().st_size


def broken(found):
    """Names of what a study found that hold a number which is none."""
    names = []
    for name, value in found.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.isnan().any():
            names.append(name)
        if isinstance(value, float) and math.isnan(value):
            names.append(name)
    return names
