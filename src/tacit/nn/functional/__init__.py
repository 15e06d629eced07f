"""The layers of the zoo as functions: tensors in, tensors out, no state."""

from __future__ import annotations

from tacit.nn.functional.pooling import robust_pool

__all__ = ["robust_pool"]
