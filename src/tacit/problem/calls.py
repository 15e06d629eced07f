"""The one place where a user's function is called: its result is checked and torch's obscure errors are explained."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tacit.errors import FunctionError, TacitError
from tacit.problem.inputs import describe
from tacit.problem.problem import SampleFunction
from tacit.shapes import Tensor

__all__ = ["call_objective", "call_rows", "explained"]

_ADVICE = (
    (
        ("data-dependent control flow",),
        "decides with `if`, `while`, `and` or `bool()` on the value of a tensor. A function of one sample is evaluated "
        "for the whole batch at once: write torch.where(condition, a, b) instead",
    ),
    (
        (".item() on a Tensor", "aten::_local_scalar_dense"),
        "turns a tensor into a Python number (.item(), float(), int()). Keep it a tensor, and use torch.where to choose",
    ),
    (
        ("dynamic shape", "aten::nonzero", "masked_select", "dynamic-shape"),
        "selects elements by a mask (u[u > 0], nonzero, masked_select), so the shape would depend on the values. "
        "Write torch.where(mask, a, b), for instance torch.where(u > 0, u, 0.0).sum()",
    ),
    (
        ("Cannot access data pointer", "can't call numpy()", "Can't call numpy()", ".numpy() is not supported",
         "accessing `data` under"),
        "leaves torch (numpy, .data, data pointers), so no derivative can be taken. Write it with torch operations; only the "
        "solver may use numpy",
    ),
    (
        ("in-place operation", "vmap: inplace arithmetic", "vmap: aten::copy_", "inplace", "on out= or view ops"),
        "writes into a tensor in place. Build a new tensor instead: torch.stack, torch.cat, torch.where or "
        "u + torch.nn.functional.one_hot(...)",
    ),
    (
        ("randomness", "batch_norm", "Batch norm", "running_mean", "value per channel when training"),
        "uses a layer that is random or looks across samples (Dropout, BatchNorm in training mode). Call .eval() on it, "
        "or apply it before the node",
    ),
    (
        ("must match the size", "shapes cannot be multiplied", "size mismatch", "inconsistent tensor size",
         "is invalid for input of size", "out of bounds for dimension", "out of range", "expected size"),
        "met shapes that do not fit. It receives ONE sample: inputs without their batch axis, and u last",
    ),
)  # fmt: skip


@contextmanager
def explained(role: str, args: Sequence[Any]) -> Iterator[None]:
    """Turn torch's errors about what cannot be done per sample into advice; anything else passes through whole."""
    try:
        yield
    except TacitError:
        raise
    except (RuntimeError, IndexError, ValueError) as error:
        if not _is_of_torch(error):
            raise
        message = str(error)
        for patterns, advice in _ADVICE:
            if any(pattern in message for pattern in patterns):
                shapes = ", ".join(describe(a) for a in args)
                raise FunctionError(
                    f"{role} {advice}. It was called with: {shapes}. torch said: {message.splitlines()[0]}"
                ) from error
        raise


def _is_of_torch(error: Exception) -> bool:
    """Whether torch raised it; a `raise` statement of the user's own, whatever its words, is none of our business."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals.get("__name__", "").startswith("torch"):
        return True
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] != "RAISE_VARARGS"


def call_objective(function: SampleFunction, args: Sequence[Any]) -> Tensor:
    """Evaluate an objective at one sample and insist on a scalar of u's dtype."""
    with explained("objective", args):
        value = function(*args)
    _check_tensor(value, "objective", "a scalar tensor, shape ()", args)
    if value.dim() != 0:
        raise FunctionError(
            f"objective expects to return a scalar tensor, shape (), for one sample; received {describe(value)}. "
            "Reduce it, for instance with .sum(); the batch is not seen inside an objective."
        )
    return value


def call_rows(function: SampleFunction, role: str, args: Sequence[Any], count: int | None = None) -> Tensor:
    """Evaluate a constraint at one sample and insist on a vector of rows, `count` of them if that is known."""
    with explained(role, args):
        value = function(*args)
    _check_tensor(value, role, "a tensor of rows, shape (rows,)", args)
    if value.dim() != 1:
        hint = "Add the axis with [None]" if value.dim() == 0 else "Flatten it with .flatten()"
        raise FunctionError(
            f"{role} expects to return its rows as a vector, shape (rows,), for one sample; received "
            f"{describe(value)}. {hint}."
        )
    if count is not None and value.shape[0] != count:
        raise FunctionError(
            f"{role} expects to return the same number of rows at every call: {count} before; received "
            f"{value.shape[0]}. Keep the rows fixed; an inequality that does not apply can be a large negative number."
        )
    return value


def _check_tensor(value: Any, role: str, expected: str, args: Sequence[Any]) -> None:
    u = args[-1]
    if not isinstance(value, Tensor):
        raise FunctionError(
            f"{role} expects to return {expected}; received {describe(value)}. Compute it with torch operations on u."
        )
    if value.dtype != u.dtype:
        raise FunctionError(
            f"{role} expects to return the dtype of u, {str(u.dtype).removeprefix('torch.')}; received "
            f"{describe(value)}. Convert constants and captured tensors (module.to(dtype)), not the result."
        )
