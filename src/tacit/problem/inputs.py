"""Reads the inputs of a problem: which are batched, over which axis, and whether they can be used at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import InputTypeError, InputValueError
from tacit.shapes import Tensor

__all__ = [
    "Inputs",
    "describe",
    "flatten_samples",
    "is_differentiable",
    "read_inputs",
    "read_unknown",
    "travels_as_tensor",
]


@dataclass(frozen=True)
class Inputs:
    """Inputs with the batch moved to axis 0; `in_dims` holds 0 for a batched input and None for a shared one."""

    values: tuple[Any, ...]
    in_dims: tuple[int | None, ...]

    @property
    def batch(self) -> int | None:
        """Number of samples, or None when every input is shared."""
        for value, dim in zip(self.values, self.in_dims, strict=True):
            if dim is not None:
                return int(value.shape[0])
        return None

    @property
    def floating(self) -> tuple[int, ...]:
        """Positions of the inputs that are floating tensors, the ones a derivative can exist for."""
        return tuple(i for i, v in enumerate(self.values) if is_differentiable(v))


def is_differentiable(value: Any) -> bool:
    """Whether a derivative with respect to `value` can exist: it is a dense floating tensor."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.layout == torch.strided


def travels_as_tensor(value: Any) -> bool:
    """Whether `value` is handed on as a tensor; a shared sparse one is an object like any other."""
    return isinstance(value, Tensor) and value.layout == torch.strided


def flatten_samples(value: Tensor) -> Tensor:
    """One row a sample; also where the batch is empty, and under every kind of vmap (`flatten` has no rule for one)."""
    return value.reshape(value.shape[0], math.prod(value.shape[1:]))


def describe(value: Any) -> str:
    """Say in a few words what `value` is, for error messages."""
    if isinstance(value, Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)} on {value.device}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"{value!r} ({type(value).__name__})" if value is not None else "None"
    return f"an object of type {type(value).__name__}"


def read_inputs(xs: tuple[Any, ...], in_dims: Any = 0) -> Inputs:
    """Check the inputs of a call and move every batch to axis 0.

    Args:
        xs: positional inputs; batched ones must be real strided tensors, shared ones may be any object.
        in_dims: an int, None, or a tuple with one of these per input, as in `torch.vmap`.

    Raises:
        InputTypeError, InputValueError: naming the input, what was expected and what came.
    """
    dims = _read_in_dims(in_dims, len(xs))
    values: list[Any] = []
    for position, (value, dim) in enumerate(zip(xs, dims, strict=True)):
        if isinstance(value, Tensor) and (dim is not None or travels_as_tensor(value)):
            _check_tensor(value, f"input {position}")
        elif isinstance(value, Tensor) and value.requires_grad:
            raise InputTypeError(
                f"input {position} expects a dense tensor where a gradient is wanted; received a sparse one, "
                f"{describe(value)}. Use .to_dense(), or .detach() if it needs none."
            )
        values.append(value if dim is None else _batch_first(value, dim, position))
    inputs = Inputs(tuple(values), tuple(None if dim is None else 0 for dim in dims))
    _check_agreement(inputs)
    return inputs


def read_unknown(value: Any, inputs: Inputs, name: str) -> Tensor:
    """Check a batched `start` or `y` against the inputs: batch, dtype and device must agree."""
    if not isinstance(value, Tensor):
        raise InputTypeError(
            f"{name} expects a batched tensor{' or a function of one sample' if name == 'start' else ''}; "
            f"received {describe(value)}. Give a tensor of shape (batch, *shape of u)."
        )
    _check_tensor(value, name)
    if not value.is_floating_point():
        raise InputTypeError(
            f"{name} expects a float32 or float64 tensor; received {describe(value)}. Convert it with {name}.double()."
        )
    if value.dim() == 0:
        raise InputValueError(
            f"{name} expects the batch on axis 0, shape (batch, *shape of u); received {describe(value)}."
        )
    if inputs.batch is not None and value.shape[0] != inputs.batch:
        raise InputValueError(
            f"{name} expects one row a sample: {inputs.batch} rows, the batch of the inputs; received {describe(value)}. "
            f"{name} is batch-first whatever in_dims says."
        )
    if value[0:1].numel() == 0 and value.shape[0] > 0:
        raise InputValueError(f"{name} expects at least one unknown a sample; received {describe(value)}.")
    for i in inputs.floating:
        other = inputs.values[i]
        if other.dtype != value.dtype or other.device != value.device:
            raise InputTypeError(
                f"{name} expects the dtype and device of the inputs: input {i} is {describe(other)}; received "
                f"{describe(value)}. Convert one of them with .to(...)."
            )
    return value


def _read_in_dims(in_dims: Any, count: int) -> tuple[int | None, ...]:
    if in_dims is None or (isinstance(in_dims, int) and not isinstance(in_dims, bool)):
        return (in_dims,) * count
    if not isinstance(in_dims, (tuple, list)):
        raise InputTypeError(
            f"in_dims expects an int, None, or a tuple of these, one per input; received {describe(in_dims)}."
        )
    if len(in_dims) != count:
        raise InputValueError(
            f"in_dims expects one entry per input: {count}; received {len(in_dims)}: {tuple(in_dims)!r}."
        )
    for dim in in_dims:
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise InputTypeError(f"in_dims expects ints and None; received {describe(dim)} in {tuple(in_dims)!r}.")
    return tuple(in_dims)


def _check_tensor(value: Tensor, name: str) -> None:
    if value.is_nested or value.is_quantized:
        raise InputTypeError(
            f"{name} expects a dense tensor of one shape a sample; received a {'nested' if value.is_nested else 'quantized'} "
            f"one. Use {'torch.nested.to_padded_tensor' if value.is_nested else 'dequantize'}."
        )
    if value.layout != torch.strided:
        raise InputTypeError(
            f"{name} expects a dense (strided) tensor; received a sparse one, {describe(value)}. Use {name}.to_dense()."
        )
    if value.is_complex():
        raise InputTypeError(
            f"{name} expects a real tensor; received {describe(value)}. Pass real and imaginary parts as two inputs, "
            "or torch.view_as_real(...)."
        )
    if value.dtype in (torch.float16, torch.bfloat16):
        raise InputTypeError(
            f"{name} expects float32 or float64: an implicit gradient has no meaning at half precision; received "
            f"{describe(value)}. Convert with .float(); under autocast call the node inside "
            "torch.autocast(device_type, enabled=False)."
        )
    if value.is_floating_point() and value.dtype not in (torch.float32, torch.float64):
        raise InputTypeError(f"{name} expects float32 or float64; received {describe(value)}. Convert with .float().")


def _batch_first(value: Any, dim: int, position: int) -> Tensor:
    if not isinstance(value, Tensor):
        raise InputTypeError(
            f"input {position} expects a batched tensor, since in_dims is {dim} for it; received {describe(value)}. "
            "Convert it with torch.as_tensor(...), or set its in_dims to None if all samples share it."
        )
    if value.dim() == 0 or not -value.dim() <= dim < value.dim():
        raise InputValueError(
            f"input {position} expects a batch on axis {dim}; received {describe(value)}. Add the axis with "
            "x.unsqueeze(0), or set its in_dims to None if all samples share it."
        )
    moved = value.movedim(dim, 0)
    if moved.shape[0] > 0 and moved.numel() == 0:
        raise InputValueError(
            f"input {position} expects at least one element a sample; received {describe(value)}. Leave it out if the "
            "problem does not need it."
        )
    return moved


def _check_agreement(inputs: Inputs) -> None:
    batch = inputs.batch
    first: int | None = None
    for i, (value, dim) in enumerate(zip(inputs.values, inputs.in_dims, strict=True)):
        if dim is not None and value.shape[0] != batch:
            raise InputValueError(
                f"all batched inputs expect the same batch: the first has {batch} samples; input {i} is "
                f"{describe(value)} (batch on axis 0 after in_dims)."
            )
        if not is_differentiable(value):
            continue
        if first is None:
            first = i
        other = inputs.values[first]
        if value.dtype != other.dtype or value.device != other.device:
            raise InputTypeError(
                f"all floating inputs expect one dtype and device: input {first} is {describe(other)}; input {i} is "
                f"{describe(value)}. Convert one of them with .to(...)."
            )
