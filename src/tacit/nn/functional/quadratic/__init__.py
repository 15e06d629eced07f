"""Quadratic programs as functions."""

from __future__ import annotations

from tacit.nn.functional.quadratic.arguments import declared
from tacit.nn.functional.quadratic.call import quadratic_program, solve_quadratic_program

__all__ = ["declared", "quadratic_program", "solve_quadratic_program"]
