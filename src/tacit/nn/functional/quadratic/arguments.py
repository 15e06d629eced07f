"""The six arguments of a quadratic program: checked, and completed where some are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import InputTypeError, InputValueError
from tacit.nn.functional.arguments import need_floating
from tacit.problem.problem import Problem
from tacit.shapes import Shaped, Tensor

__all__ = ["NAMES", "Arguments", "declared", "read_arguments"]

NAMES = ("Q", "q", "A", "b", "G", "h")
_SHAPES = ("n, n", "n", "p, n", "p", "q, n", "q")
_RANKS = (2, 1, 2, 1, 2, 1)


@dataclass(frozen=True)
class Arguments:
    """Six tensors in the order of `NAMES`, each with the batch at axis 0 (`dims` 0) or shared (`dims` None).

    What was left out is there as zeros, or with no rows. `single`: nothing had a batch, and q was given one of 1.
    `lifted`: half precision came and is worked on in float32.
    """

    tensors: tuple[Shaped[Tensor, "..."], ...]
    dims: tuple[int | None, ...]
    n: int
    p: int
    q: int
    batch: int
    single: bool
    dtype: torch.dtype


def read_arguments(values: tuple[Any, ...]) -> Arguments:
    """Check types and shapes of `(Q, q, A, b, G, h)`, each a tensor or None.

    Raises:
        InputTypeError: not tensors, or of different dtypes or devices.
        InputValueError: shapes that do not fit together.
    """
    given = {name: value for name, value in zip(NAMES, values, strict=True) if value is not None}
    for name, value in given.items():
        need_floating(value, name)
    if "Q" not in given and "q" not in given:
        raise InputValueError("quadratic_program expects Q or q, or both; received neither. An objective is needed.")
    for matrix, right in (("A", "b"), ("G", "h")):
        if (matrix in given) != (right in given):
            raise InputValueError(
                f"{matrix} and {right} come together; received only {matrix if matrix in given else right}. Give both, "
                "or neither."
            )
    first = next(iter(given))
    like = given[first]
    for name, value in given.items():
        if value.dtype != like.dtype or value.device != like.device:
            raise InputTypeError(
                f"{name} expects the dtype and device of {first}, {like.dtype} on {like.device}; received {value.dtype} "
                f"on {value.device}. Use {name}.to({first})."
            )
        rank = _RANKS[NAMES.index(name)]
        if value.dim() not in (rank, rank + 1):
            raise InputValueError(
                f"{name} expects shape ({_SHAPES[NAMES.index(name)]}), shared by all samples, or one such a sample, batch "
                f"first; received shape {tuple(value.shape)}. Flatten several batch axes into one."
            )
    n = like.shape[-1]
    p, q = (given[k].shape[-1] if k in given else 0 for k in ("b", "h"))
    batch = _batch_of(given)
    tensors, dims = [], []
    for name, rank, shape in zip(NAMES, _RANKS, ((n, n), (n,), (p, n), (p,), (q, n), (q,)), strict=True):
        value = given.get(name)
        if value is None:
            value = like.new_zeros(shape)
        if value.shape[-rank:] != shape:
            raise InputValueError(
                f"{name} expects shape {shape} for n = {n} unknowns, {p} equalities and {q} inequalities (batch in front); "
                f"received {tuple(value.shape)}. n is read off {first}, the numbers of rows off b and h."
            )
        tensors.append(value)
        dims.append(0 if value.dim() > rank else None)
    if n == 0:
        raise InputValueError("quadratic_program expects at least one unknown; received n = 0.")
    single = batch is None
    if single:
        tensors[1], dims[1] = tensors[1].unsqueeze(0), 0
    dtype = like.dtype
    if dtype in (torch.float16, torch.bfloat16):
        tensors = [t.float() for t in tensors]
    return Arguments(tuple(tensors), tuple(dims), n, p, q, 1 if batch is None else batch, single, dtype)


def _batch_of(given: dict[str, Tensor]) -> int | None:
    sizes = {name: value.shape[0] for name, value in given.items() if value.dim() > _RANKS[NAMES.index(name)]}
    if len(set(sizes.values())) > 1:
        raise InputValueError(
            f"batched arguments expect one batch size; received {sizes}. Leave the batch axis off what all samples share."
        )
    return next(iter(sizes.values()), None)


def declared(p: int, q: int) -> Problem:
    """The declaration: inputs `Q, q, A, b, G, h`, unknown `u (n,)`. It is what the layer's gradient is tested against."""

    def objective(Q: Tensor, q: Tensor, A: Tensor, b: Tensor, G: Tensor, h: Tensor, u: Tensor) -> Tensor:
        return 0.5 * torch.dot(u, Q @ u) + torch.dot(q, u)

    def equality(Q: Tensor, q: Tensor, A: Tensor, b: Tensor, G: Tensor, h: Tensor, u: Tensor) -> Tensor:
        return A @ u - b

    def inequality(Q: Tensor, q: Tensor, A: Tensor, b: Tensor, G: Tensor, h: Tensor, u: Tensor) -> Tensor:
        return G @ u - h

    return Problem(objective, equality if p else None, inequality if q else None)
