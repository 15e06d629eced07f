"""Which solver `solver=None` stands for."""

from __future__ import annotations

from tacit.problem import Instance
from tacit.solvers.base import Solver
from tacit.solvers.interior_point import InteriorPoint
from tacit.solvers.newton import Newton

__all__ = ["default_solver"]


def default_solver(instance: Instance) -> Solver:
    """Newton without constraints, an interior point with them."""
    return InteriorPoint() if instance.r else Newton()
