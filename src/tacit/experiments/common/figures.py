"""Matplotlib where it is installed, drawing into files alone."""

from __future__ import annotations

from typing import Any

from tacit.errors import MissingDependencyError

__all__ = ["pyplot"]


def pyplot() -> Any:
    """Return `matplotlib.pyplot`, which needs no screen then, or say how to install it."""
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError("Figures need matplotlib: pip install 'tacit[plot]'.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
