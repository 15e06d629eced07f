"""What every solver is and returns: frozen options, one method `solve`, one record `Found`, and the loop they share.

A solver moves a whole batch at once, but every element has its own step, its own stopping test and its own status. An
element that is finished leaves the batch, so that nothing computed later can touch it.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch

from tacit.errors import OptionError, OptionTypeError, nearest
from tacit.problem import Instance, Status
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["RUNNING", "Found", "Progress", "Solver", "State", "check_count", "check_positive", "drive", "tolerance"]

RUNNING = -1
"""Stands in a status tensor for "still searching"; never returned."""


@dataclass(frozen=True)
class Found:
    """What a solver brings back: points, multipliers of `L = f - lam' rows` if it knows them, and how it ended.

    Attributes:
        u: `(b, m)`.
        lam: `(b, r)`, or None if the solver has no multipliers.
        residual: `(b,)`, scaled size of the optimality conditions at `(u, lam)`.
        iterations: `(b,)`.
        status: `(b,)`, values of `Status`.
    """

    u: Float[Tensor, "b m"]
    lam: Float[Tensor, "b r"] | None
    residual: Float[Tensor, " b"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]

    def replaced_at(self, index: Int[Tensor, " k"], other: Found) -> Found:
        """This result with the elements `index` taken from `other`."""

        def put(mine: Any, theirs: Any) -> Any:
            return mine if mine is None or theirs is None else mine.index_copy(0, index, theirs)

        return Found(*(put(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))


@dataclass(frozen=True)
class Progress:
    """One line of a search, given to a callback: which samples still search, where they are and how good that is."""

    iteration: int
    samples: Int[Tensor, " k"]
    u: Float[Tensor, "k m"]
    objective: Float[Tensor, " k"]
    residual: Float[Tensor, " k"]


class _ChecksOptions(ABCMeta):
    """Refuses an option that does not exist with the nearest one that does, instead of Python's bare TypeError."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        known = [f.name for f in fields(cls) if f.init]  # type: ignore[arg-type]
        for name in options:
            if name not in known:
                raise OptionTypeError(
                    f"{cls.__name__} expects options among {', '.join(known) or 'none'}; received {name!r}."
                    f"{nearest(name, known)}"
                )
        return super().__call__(*args, **options)


class Solver(ABC, metaclass=_ChecksOptions):
    """Finds `y` for a batch. Subclasses are frozen dataclasses: their fields are their options."""

    @abstractmethod
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        """Search from `start` without autograd; a bad element gets a status and never raises."""


@dataclass(frozen=True)
class State:
    """Tensors of a search with the batch first; subclasses add theirs. `status` is RUNNING until an element is done."""

    u: Float[Tensor, "b m"]
    residual: Float[Tensor, " b"]
    status: Int[Tensor, " b"]

    def take(self: S, index: Tensor) -> S:
        """The state of some of the elements."""
        return replace(self, **{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def put(self: S, index: Int[Tensor, " k"], other: S) -> S:
        """This state with the elements `index` taken from `other`."""
        return replace(
            self, **{f.name: getattr(self, f.name).index_copy(0, index, getattr(other, f.name)) for f in fields(self)}
        )

    def where(self: S, mask: Bool[Tensor, " b"], other: S) -> S:
        """This state where `mask` holds and `other` elsewhere."""

        def choose(mine: Tensor, theirs: Tensor) -> Tensor:
            return torch.where(mask.reshape(-1, *(1,) * (mine.dim() - 1)), mine, theirs)

        return replace(self, **{f.name: choose(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)})


S = TypeVar("S", bound=State)


def drive(
    instance: Instance,
    state: S,
    advance: Callable[[Instance, S], S],
    max_iter: int | Int[Tensor, " b"],
    callback: Callable[[Progress], None] | None = None,
) -> tuple[S, Int[Tensor, " b"]]:
    """Repeat `advance` on the elements that still search; return their last states and how many steps each took.

    Elements that search no longer leave the batch. What still searches after `max_iter` steps, one number for all or
    one for each, gets MAX_ITERATIONS.
    """
    everything = state
    index = torch.arange(instance.batch, device=state.u.device)
    limits = max_iter if isinstance(max_iter, Tensor) else torch.full_like(index, max_iter)
    most = int(limits.amax()) if len(limits) else 0
    iterations = torch.zeros(instance.batch, dtype=torch.int64, device=state.u.device)
    for iteration in range(most + 1):
        if callback is not None and instance.batch:
            callback(Progress(iteration, index, state.u, instance.objective(state.u), state.residual))
        running = (state.status == RUNNING) & (limits[index] > iteration)
        if not bool(running.all()):
            everything = everything.put(index, state)
            state, instance, index = state.take(running), instance.take(running), index[running]
        if not len(index):
            break
        state = advance(instance, state)
        iterations[index] += 1
    exhausted = torch.where(everything.status == RUNNING, int(Status.MAX_ITERATIONS), everything.status)
    return replace(everything, status=exhausted), iterations


def tolerance(tol: float | None, dtype: torch.dtype) -> float:
    """The tolerance to stop at: what the user said, or `eps^0.6` (4e-10 in float64, 7e-5 in float32)."""
    return float(torch.finfo(dtype).eps ** 0.6) if tol is None else tol


def check_positive(owner: object, name: str, optional: bool = False) -> None:
    """Insist that the option `name` of `owner` is a positive number (or None, if it is optional)."""
    value = getattr(owner, name)
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OptionTypeError(
            f"{type(owner).__name__}({name}=...) expects a positive number{' or None' if optional else ''}; received "
            f"{value!r} ({type(value).__name__}). Write for instance {name}=1e-8."
        )
    if not 0 < value < float("inf"):
        raise OptionError(
            f"{type(owner).__name__}({name}=...) expects a positive finite number; received {value!r}. "
            f"Write for instance {name}=1e-8."
        )


def check_count(owner: object, name: str, least: int = 1) -> None:
    """Insist that the option `name` of `owner` is an integer of at least `least`."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionTypeError(
            f"{type(owner).__name__}({name}=...) expects an integer of at least {least}; received {value!r} "
            f"({type(value).__name__}). Write for instance {name}={max(least, 100)}."
        )
    if value < least:
        raise OptionError(
            f"{type(owner).__name__}({name}=...) expects an integer of at least {least}; received {value}. "
            f"Write for instance {name}={max(least, 100)}."
        )
