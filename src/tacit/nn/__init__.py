"""The zoo: one layer a file, each a declared problem with a fast closed form beside it."""

from __future__ import annotations

from tacit.nn import functional
from tacit.nn.robust_pool import RobustPool

__all__ = ["RobustPool", "functional"]
