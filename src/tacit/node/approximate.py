"""Gradients that are approximations, and say so by name: unrolled, truncated, one-step. DDN[approximations]"""

from __future__ import annotations

from tacit.errors import InputTypeError
from tacit.implicit.policy import GradientPolicy
from tacit.node.binding import Bound
from tacit.node.locate import Search
from tacit.shapes import Tensor

__all__ = ["approximate"]


def approximate(bound: Bound, search: Search, policy: GradientPolicy) -> Tensor:
    """y with an approximate gradient."""
    raise InputTypeError(f"gradient={policy!r} is not available yet.")
