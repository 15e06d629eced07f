"""Finds y: runs the solver on plain tensors, then reads active rows and multipliers off the answer, whoever gave it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.func import vmap

from tacit.errors import (
    ConvergenceError,
    FunctionError,
    InputTypeError,
    InputValueError,
    SolverError,
    SolverWarning,
)
from tacit.implicit import Implicit, kept_rows
from tacit.implicit.nonsmooth import balances_at_kink
from tacit.node.binding import Bound
from tacit.node.concrete import Dims, concrete
from tacit.node.transforms import is_transformed
from tacit.problem import Instance, Status, describe, flatten_samples, read_unknown
from tacit.problem.active_set import find_active_set
from tacit.problem.calls import explained
from tacit.shapes import Tensor
from tacit.solvers import Solver, default_solver

__all__ = ["Located", "Search", "check_solver", "locate"]


@dataclass(frozen=True)
class Search:
    """How y is to be found: where to start, what solves, or y itself.

    Attributes:
        start: a batched tensor, a function of one sample's inputs, or None.
        solver: a `tacit.solvers.Solver`, any callable of the batched inputs, or None for the default.
        y: the solution, if it is already known.
    """

    start: Any = None
    solver: Any = None
    y: Any = None
    policy: Implicit = field(default_factory=Implicit)
    on_failure: str = "warn"


@dataclass(frozen=True)
class Located:
    """Where the solution is and what is known of it; detached, batch first.

    `bound` has captured tensors declared; `start` is where the search began;
    `state` holds `RowState` values; `failed` marks samples without an answer.
    """

    bound: Bound
    p: int
    q: int
    start: Tensor
    y: Tensor
    lam: Tensor
    state: Tensor
    failed: Tensor
    residual: Tensor
    iterations: Tensor
    status: Tensor


def locate(bound: Bound, search: Search) -> Located:
    """Find y by `search`; detached results in whatever transforms are active."""
    check_solver(search.solver)
    called = search.solver if search.solver is not None and not isinstance(search.solver, Solver) else None
    if called is None and search.solver is None and search.y is None and bound.solve_function is not None:
        called = bound.solve_function
        takes_extras = True
    else:
        takes_extras = False
    if search.y is not None:
        u = read_unknown(search.y, bound.inputs, "y").detach()
    elif called is not None:
        u = _call_solver(bound, called, search, takes_extras)
    else:
        u = _start(bound, search.start).detach()
    if torch.is_grad_enabled() or is_transformed():
        bound = bound.declare_captured(u)
    given = search.y is not None or called is not None
    return _settle(bound, u, search, None if given else search.solver, given)


def _settle(bound: Bound, u: Tensor, search: Search, solver: Solver | None, given: bool) -> Located:
    """Solve if nobody has yet, and find the active set, all at plain values."""
    counts: dict[str, int] = {}

    def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        *tensors, u = plain
        values, in_dims = bound.with_tensors(tuple(tensors), dims[:-1])
        instance = Instance.bind(bound.problem, values, in_dims, u)
        counts.update(p=instance.p, q=instance.q)
        flat = flatten_samples(u)
        if given or instance.batch == 0:
            return _judge(instance, flat, search, u.shape)
        found = (default_solver(instance) if solver is None else solver).solve(instance, flat)
        _report(found.status, search.on_failure, _SEARCHED)
        active = find_active_set(instance, found.u, found.lam, search.policy.activity_tol)
        return (found.u.reshape(u.shape), active.lam, active.state, found.status != Status.CONVERGED, found.residual,
                found.iterations, found.status)  # fmt: skip

    results = concrete(code, (*bound.tensor_dims, 0), (*bound.tensors, u))
    return Located(bound, counts["p"], counts["q"], u, *results)


def _judge(instance: Instance, y: Tensor, search: Search, shape: torch.Size) -> tuple[Tensor, ...]:
    """The record of a y that came from outside: nobody's word is taken for it.

    Its `status` says whether the first-order conditions hold; whether its gradient is refused is decided later, by how
    far y is from the solution.
    """
    active = find_active_set(instance, y, None, search.policy.activity_tol)
    finite = active.finite & y.isfinite().all(1)
    rough = finite & (active.residual > search.policy.stationary_within(y.dtype))
    if bool(rough.any()):
        part = instance.take(rough)
        keep = kept_rows(active.state[rough], search.policy)
        rough[rough.clone()] = ~balances_at_kink(part, y[rough], active.lam[rough], keep)
    status = torch.where(rough, int(Status.STALLED), torch.where(finite, int(Status.CONVERGED), int(Status.NONFINITE)))
    if search.y is None:
        _report(status, search.on_failure, _RETURNED)
    failed = ~finite if search.y is None else torch.zeros_like(finite)  # without a search, none has failed
    return (y.reshape(shape), active.lam, active.state, failed, active.residual,
            torch.zeros_like(status), status)  # fmt: skip


def _start(bound: Bound, start: Any) -> Tensor:
    function = start if callable(start) and not isinstance(start, Tensor) else None
    if start is None and bound.start_function is not None:
        function, values, dims = bound.start_function, bound.values, bound.in_dims
    else:
        values, dims = bound.values[bound.extras :], bound.in_dims[bound.extras :]
    if function is None:
        if start is None:
            raise InputValueError(
                "start expects a batched tensor, or a function of one sample's inputs: it gives the shape of y and where "
                "the search begins; received None. Give start=x, or a solver that needs none (any callable)."
            )
        return read_unknown(start, bound.inputs, "start")
    if all(d is None for d in dims):
        raise InputValueError(
            "start expects a batched tensor when every input is shared (in_dims=None), since it sets the batch; "
            "received a function. Give a tensor of shape (batch, *shape of u)."
        )

    def checked(*args: Any) -> Tensor:
        with explained("start", args):
            value = function(*args)
        if not isinstance(value, Tensor):
            raise FunctionError(f"start expects to return a tensor like u; received {describe(value)}.")
        return value

    empty = bound.inputs.batch == 0
    if empty:  # the function must see a sample to be called at all
        values = tuple(v.new_ones((1, *v.shape[1:])) if d == 0 else v for v, d in zip(values, dims, strict=True))
    with torch.no_grad():
        found = vmap(checked, in_dims=dims)(*values)
    return read_unknown(found[:0] if empty else found, bound.inputs, "start")


def check_solver(solver: Any) -> None:
    """Insist on something that can solve."""
    if solver is None or isinstance(solver, Solver):
        return
    if isinstance(solver, type) or not callable(solver):
        hint = f" Write {solver.__name__}()." if isinstance(solver, type) else ""
        raise InputTypeError(
            "solver expects a tacit.solvers object, a callable solver(*inputs) -> y, or None; received "
            f"{describe(solver)}.{hint}"
        )


def _call_solver(bound: Bound, solver: Callable[..., Any], search: Search, takes_extras: bool) -> Tensor:
    """Run a user's solver on plain tensors, shared inputs unexpanded; it gets `start` only if it accepts it."""
    skip = 0 if takes_extras else bound.extras
    begin = None
    if search.start is not None or bound.start_function is not None:
        begin = _start(bound, search.start) if _accepts_start(solver) else None

    def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        tensors = plain if begin is None else plain[:-1]
        values, in_dims = bound.with_tensors(tensors, dims[: len(tensors)])
        batch = next((v.shape[0] for v, d in zip(values, in_dims, strict=True) if d == 0), None)
        keyword = {} if begin is None else {"start": plain[-1]}
        return (_as_unknown(solver(*values[skip:], **keyword), values, in_dims, batch, bound),)

    dims, tensors = bound.tensor_dims, bound.tensors
    if begin is not None:
        dims, tensors = (*dims, 0), (*tensors, begin)
    if all(d is None for d in dims):
        raise InputValueError(
            "a callable solver expects at least one batched input, or start=..., to know the batch; received shared "
            "inputs only."
        )
    return concrete(code, dims, tensors)[0]


def _as_unknown(y: Any, values: tuple[Any, ...], in_dims: Any, batch: int | None, bound: Bound) -> Tensor:
    """Take a solver's answer, a tensor or a numpy array, to the dtype and device of the inputs."""
    like = next((v for v in values if isinstance(v, Tensor) and v.is_floating_point()), None)
    if not isinstance(y, Tensor):
        kind = getattr(getattr(y, "dtype", None), "kind", "f")  # numpy's letter for what an array holds
        if not hasattr(y, "__array__") or kind not in "biufc":
            raise SolverError(
                f"a solver expects to return y as a tensor or numpy array of numbers; received {describe(y)}."
            )
        y = _from_array(y)
    if y.layout != torch.strided or y.is_meta:
        raise SolverError(
            f"a solver expects to return a dense tensor with its data; received {describe(y)}, {y.layout}."
        )
    if not y.is_floating_point():
        raise SolverError(f"a solver expects to return floating values; received {describe(y)}.")
    y = y.detach()
    if like is not None:
        y = y.to(dtype=like.dtype, device=like.device)
    if y.dim() == 0 or (batch is not None and y.shape[0] != batch):
        raise SolverError(
            f"a solver expects to return one y a sample, shape ({batch}, *shape of u); received {describe(y)}. It gets "
            "the whole batch at once, batch on axis 0."
        )
    if y.shape[0] > 0 and y.numel() == 0:
        raise SolverError(f"a solver expects to return at least one unknown a sample; received {describe(y)}.")
    return y.clone()


def _from_array(y: Any) -> Tensor:
    """The tensor of a numpy array, whatever its strides, byte order or precision."""
    array = y.__array__()
    plain = "float64" if array.dtype.kind == "f" and array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
    return torch.as_tensor(array.astype(plain, order="C"))


def _accepts_start(solver: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(solver).parameters.values()
    except (TypeError, ValueError):  # builtins and C functions have no signature
        return False
    return any(p.kind is p.VAR_KEYWORD or (p.name == "start" and p.kind is not p.POSITIONAL_ONLY) for p in parameters)


def _report(status: Tensor, on_failure: str, message: tuple[str, str]) -> None:
    """Warn once, or raise, about samples that have no answer."""
    samples = (status != Status.CONVERGED).nonzero().flatten().tolist()
    if not samples or on_failure == "ignore":
        return
    names: dict[str, list[int]] = {}
    for i in samples:
        names.setdefault(Status(int(status[i])).name, []).append(i)
    detail = "; ".join(
        f"{name}: samples {', '.join(map(str, group[:8]))}{', ...' if len(group) > 8 else ''}"
        for name, group in names.items()
    )
    what, advice = message
    text = (
        f"{len(samples)} of {len(status)} samples {what} ({detail}). {advice} tacit.solve(...) tells residuals; "
        "on_failure='ignore' silences this."
    )
    if on_failure == "raise":
        raise ConvergenceError(text)
    warnings.warn(text, SolverWarning, stacklevel=2)


_SEARCHED = (
    "did not converge",
    "Their y is the last point reached and their gradient will be zero. Try a better start or more iterations "
    "(solver=tacit.solvers...);",
)
_RETURNED = (
    "were not solved by the solver that was given",
    "The y it returned is no stationary point of the problem as it is declared, and their gradient will be zero. "
    "Compare the two: a sign, a factor, a constraint;",
)
