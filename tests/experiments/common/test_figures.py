"""Figures need matplotlib and no screen."""

from __future__ import annotations

import sys

import pytest

from tacit.errors import MissingDependencyError
from tacit.experiments.common.figures import pyplot


def test_a_figure_is_drawn_without_a_screen(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.delenv("DISPLAY", raising=False)
    plt = pyplot()
    figure, axis = plt.subplots()
    axis.plot([0, 1])
    figure.savefig(tmp_path / "a.png")
    plt.close(figure)
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"


def test_how_to_install_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        pyplot()
