"""Everything about a call that does not depend on values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from tacit.implicit import Implicit
from tacit.node.binding import Bound
from tacit.problem import Instance
from tacit.shapes import Tensor

__all__ = ["Rule"]


@dataclass(frozen=True)
class Rule:
    """The problem with its inputs, its row counts, the shape of one sample's u, and the gradient policy."""

    bound: Bound
    p: int
    q: int
    shape: torch.Size
    policy: Implicit

    @property
    def matrix_free(self) -> bool:
        """Whether K is never formed."""
        return not self.policy.is_dense(math.prod(self.shape) + self.p + self.q)

    def instance(self, tensors: tuple[Tensor, ...], y: Tensor) -> Instance:
        """The problem at these inputs, batched as the inputs of the call are."""
        return self.bound.instance(tensors, self.bound.tensor_dims, y.reshape(y.shape[0], *self.shape), self.p, self.q)
