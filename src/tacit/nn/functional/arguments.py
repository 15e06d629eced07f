"""Arguments of layers: which dims, which rows, which scale; checked once, with messages that say what to do."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import torch
from torch.autograd import forward_ad

from tacit.errors import InputTypeError, InputValueError, OptionError, OptionTypeError, nearest
from tacit.shapes import Float, Tensor

__all__ = [
    "choice",
    "dims_of",
    "full_precision",
    "in_forward_mode",
    "need_floating",
    "per_row",
    "positive_number",
    "restore",
    "rows_of",
    "working_dtype",
]


def need_floating(x: Tensor, name: str = "x") -> None:
    """Raise InputTypeError unless `x` is a real floating tensor."""
    if not isinstance(x, Tensor):
        raise InputTypeError(f"{name} expects a tensor; received {type(x).__name__}. Use torch.as_tensor({name}).")
    if not x.is_floating_point():
        raise InputTypeError(f"{name} expects a floating dtype; received {x.dtype}. Use {name}.float().")


def dims_of(dim: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return `dim` as a sorted tuple of non-negative dims.

    >>> dims_of((-1, 0), 3)
    (0, 2)
    """
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    if not given:
        raise OptionError("dim expects one or more dims; received none. Name the dims to work over, such as dim=-1.")
    for d in given:
        if not isinstance(d, int) or isinstance(d, bool):
            raise OptionTypeError(f"dim expects integers; received {d!r}. Write dim=-1 or dim=(-2, -1).")
        if not -ndim <= d < ndim:
            raise OptionError(f"dim expects values from {-ndim} to {ndim - 1} for {ndim} dims; received {d}.")
    dims = tuple(sorted(d % ndim for d in given))
    if len(set(dims)) < len(dims):
        raise OptionError(f"dim expects each dim once; received {given}. Drop the repeated one.")
    return dims


def rows_of(x: Tensor, dims: tuple[int, ...]) -> Float[Tensor, "r n"]:
    """Return `x` as rows: the named dims last and flattened, the others flattened in front."""
    n = math.prod([x.shape[d] for d in dims])
    if n == 0:
        raise InputValueError(
            f"expects at least one number along dim {dims}; received shape {tuple(x.shape)}. "
            "Skip empty inputs, or pad them and give weight 0."
        )
    tail = tuple(range(x.ndim - len(dims), x.ndim))
    moved = x if dims == tail else x.movedim(dims, tail)
    return moved.reshape(math.prod(moved.shape[: x.ndim - len(dims)]), n)


def restore(rows: Float[Tensor, "r n"], shape: torch.Size, dims: tuple[int, ...]) -> Tensor:
    """Return rows as the tensor of that shape which `rows_of` flattened."""
    front = [size for d, size in enumerate(shape) if d not in dims]
    moved = rows.reshape(front + [shape[d] for d in dims])
    tail = tuple(range(len(front), len(shape)))
    return moved if dims == tail else moved.movedim(tail, dims)


def per_row(value: float | Tensor, x: Tensor, dims: tuple[int, ...], name: str) -> Float[Tensor, "r 1"]:
    """Return a number, or a tensor of one number per channel or sample, as one number per row of `x`.

    A tensor with as many dims as `x` must have size 1 in the dims worked over; another is broadcast against the shape
    that is left when those dims are removed: for x (b, c, n) and dim=-1, (c,) is per channel and (b, 1) per sample.
    """
    left = [size for d, size in enumerate(x.shape) if d not in dims]
    if not isinstance(value, Tensor):
        number = positive_number(value, name)
        return x.new_full((), number).expand(math.prod(left), 1)
    need_floating(value, name)
    if value.device != x.device:
        raise InputTypeError(
            f"{name} expects the device of x, {x.device}; received {value.device}. Use {name}.to(x.device)."
        )
    kept = [1 if d in dims else size for d, size in enumerate(x.shape)]
    for wanted, fits in ((kept, value.ndim == x.ndim), (left, value.ndim <= len(left))):
        if fits and all(have in (1, want) for have, want in zip(reversed(value.shape), reversed(wanted), strict=False)):
            return value.to(x.dtype).expand(wanted).reshape(math.prod(left), 1)
    raise InputValueError(
        f"{name} expects a number, or a tensor that broadcasts to {tuple(left)} (or {tuple(kept)}) for x of shape "
        f"{tuple(x.shape)} and dim {dims}; received shape {tuple(value.shape)}."
    )


def positive_number(value: float, name: str) -> float:
    """Return a positive number, or raise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OptionTypeError(f"{name} expects a positive number or a tensor; received {type(value).__name__}.")
    if not value > 0 or math.isinf(value):
        raise OptionError(f"{name} expects a positive, finite number; received {value}.")
    return float(value)


def choice(value: str, known: Sequence[str], name: str) -> str:
    """Return `value` if it is one of the known names, or raise with the nearest."""
    if value not in known:
        raise OptionError(f"{name} expects one of {sorted(known)}; received {value!r}.{nearest(str(value), known)}")
    return value


def working_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype to compute in: float32 for half precision, else that of `x`."""
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def full_precision(x: Tensor) -> contextlib.AbstractContextManager[object]:
    """Return a context in which autocast leaves the layer's own arithmetic alone."""
    return torch.autocast(x.device.type, enabled=False)


def in_forward_mode() -> bool:
    """Return whether forward-mode differentiation is going on, which an autograd.Function without jvp would break."""
    return forward_ad._current_level >= 0
