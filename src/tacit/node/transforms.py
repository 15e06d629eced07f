"""What surrounds a call: torch.func transforms, forward-mode duals, autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

import torch
import torch.autograd.forward_ad as forward_ad

from tacit.shapes import Tensor

__all__ = ["forward_mode_order", "full_precision", "is_batched", "is_dual", "is_transformed"]

F = TypeVar("F", bound=Callable[..., Any])


def full_precision(function: F) -> F:
    """Decorator: suspend autocast, under which a linear solve keeps three digits, on the devices of the arguments."""

    @functools.wraps(function)
    def suspended(*args: Any, **kwargs: Any) -> Any:
        kinds = {"cpu", *(t.device.type for t in args if isinstance(t, Tensor))} - {"meta"}
        with ExitStack() as stack:
            for kind in kinds:
                if torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, enabled=False))
            return function(*args, **kwargs)

    return suspended  # type: ignore[return-value]


def is_transformed() -> bool:
    """Whether any torch.func transform is active."""
    return bool(torch._C._functorch.get_interpreter_stack())


def is_batched(t: Tensor) -> bool:
    """Whether a backward pass runs for several incoming gradients at once (`is_grads_batched`): values are hidden then."""
    return bool(torch._C._functorch.is_legacy_batchedtensor(t) or torch._C._functorch.is_batchedtensor(t))


def forward_mode_order(tensors: tuple[Tensor, ...]) -> int:
    """How many derivatives must be right if forward mode is involved; 0 if it is not."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    kinds = [level.key() for level in stack]
    kind = torch._C._functorch.TransformType
    dual = any(is_dual(t) for t in tensors)
    if kind.Jvp not in kinds and not dual:
        return 0
    levels = sum(k in (kind.Jvp, kind.Grad) for k in kinds) + dual
    return int(levels + 2 * (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)))


def is_dual(t: Tensor) -> bool:
    """Whether a plain tensor carries a forward-mode tangent."""
    if forward_ad._current_level < 0 or not t.is_floating_point():
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(t) and forward_ad.unpack_dual(t).tangent is not None
