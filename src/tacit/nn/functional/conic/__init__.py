"""Convex cone programs as functions."""

from __future__ import annotations

from tacit.nn.functional.conic.call import cone_program
from tacit.nn.functional.conic.declared import declared

__all__ = ["cone_program", "declared"]
