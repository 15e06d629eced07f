"""Which solver `solver=None` stands for."""

from __future__ import annotations

from tacit.problem import Instance
from tacit.solvers.automatic import Automatic
from tacit.solvers.base import Solver

__all__ = ["default_solver"]


def default_solver(instance: Instance) -> Solver:
    """The solver that picks by what the problem has."""
    del instance
    return Automatic()
