"""Quadratic programs as functions."""

from __future__ import annotations

from tacit.nn.functional.quadratic.arguments import NAMES, declared
from tacit.nn.functional.quadratic.call import quadratic_program, solve_quadratic_program

__all__ = ["NAMES", "declared", "quadratic_program", "solve_quadratic_program"]
