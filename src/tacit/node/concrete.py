"""Runs ordinary code on plain tensors from inside any stack of torch.func transforms.

Solvers, active sets and rank decisions look at values: they loop, branch and call numpy. Under vmap, grad or jvp a tensor
is a wrapper that hides its values. `concrete` unwraps every level: it folds all vmapped axes into the one batch axis
that tacit works with, calls the function once on plain tensors, and unfolds what comes back. Nothing is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tacit.shapes import Tensor

__all__ = ["Dims", "concrete"]

Dims = tuple[int | None, ...]
BatchedCode = Callable[[Dims, tuple[Tensor, ...]], tuple[Tensor, ...]]


def concrete(code: BatchedCode, in_dims: Dims, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Call `code(in_dims, tensors)` on plain tensors; its results are batch-first, detached at every level.

    Args:
        code: receives the tensors with their in_dims (0: batch at axis 0, None: shared by all samples). A shared tensor
            becomes a batched one where a vmap runs over it.
        in_dims: one entry per tensor; at least one is 0.
    """
    return _Concrete.apply(code, in_dims, *tensors)


@contextmanager
def _without_saved_tensor_hooks() -> Iterator[None]:
    """Set the hooks of checkpointing and offloading aside: torch.func refuses to run under them."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    if hooks is None:
        yield
        return
    torch._C._autograd._pop_saved_tensors_default_hooks()
    try:
        with _without_saved_tensor_hooks():  # they may be nested
            yield
    finally:
        torch._C._autograd._push_saved_tensors_default_hooks(*hooks)


class _Concrete(torch.autograd.Function):
    @staticmethod
    def forward(code: BatchedCode, in_dims: Dims, *tensors: Tensor) -> tuple[Tensor, ...]:
        with torch.inference_mode(False), torch.no_grad():
            plain = tuple(t.clone() if t.is_inference() else t.detach() for t in tensors)
            device = plain[0].device.type
            with torch.autocast(device, enabled=False), _without_saved_tensor_hooks():
                return code(in_dims, plain)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output)
        ctx.count = len(inputs)
        ctx.outputs = len(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        return (None,) * ctx.count

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[None, ...]:
        return (None,) * ctx.outputs

    @staticmethod
    def vmap(info: Any, dims: Any, *args: Any) -> Any:
        code, in_dims, *tensors = args
        size = info.batch_size
        batch = _batch_size(in_dims, dims[2:], tuple(tensors))
        folded: list[Tensor] = []
        folded_dims: list[int | None] = []
        for tensor, in_dim, dim in zip(tensors, in_dims, dims[2:], strict=True):
            if dim is None and in_dim is None:
                folded.append(tensor)
                folded_dims.append(None)
                continue
            lifted = tensor.movedim(dim, 0) if dim is not None else tensor.expand(size, *tensor.shape)
            if in_dim is None:
                lifted = lifted[:, None].expand(size, batch, *lifted.shape[1:])
            folded.append(lifted.reshape(size * batch, *lifted.shape[2:]))
            folded_dims.append(0)
        results = _Concrete.apply(code, tuple(folded_dims), *folded)
        return tuple(r.reshape(size, batch, *r.shape[1:]) for r in results), (0,) * len(results)


def _batch_size(in_dims: Dims, dims: Any, tensors: tuple[Tensor, ...]) -> int:
    for tensor, in_dim, dim in zip(tensors, in_dims, dims, strict=True):
        if in_dim is not None:
            return int(tensor.shape[0] if dim is None else tensor.movedim(dim, 0).shape[1])
    raise AssertionError("concrete() needs a batched tensor")  # every caller passes the unknown, which is one
