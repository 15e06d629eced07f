"""Batched linear algebra that knows, for every element, how well it went. It has never heard of a Problem."""

from tacit.linalg.dense import Factor, factor
from tacit.linalg.equilibrate import equilibrate

__all__ = ["Factor", "equilibrate", "factor"]
