"""Checks for us and for authors of new nodes: gradients of a declared problem, and the contract of a layer."""

from tacit.testing.contract import NodeContract
from tacit.testing.gradients import check_gradients, check_transforms, follow

__all__ = ["NodeContract", "check_gradients", "check_transforms", "follow"]
