"""Brings a call into one shape: a plain Problem whose inputs are all declared.

Parameters and buffers of a Node, and tensors captured by closures, become leading shared inputs. Everything below this
file sees only functions of declared inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.func import functional_call, vmap

from tacit.errors import InputTypeError, InputValueError
from tacit.node.captured import declare_captured, find_captured
from tacit.problem import Inputs, Instance, Problem, describe, is_differentiable, read_inputs, travels_as_tensor
from tacit.shapes import Tensor

__all__ = ["Bound", "bind", "declares_problem"]


@dataclass(frozen=True)
class Bound:
    """A problem with all its inputs, the first `extras` of them not the caller's own.

    Attributes:
        start_function, solve_function: a Node's own, with the extras as leading arguments; None for a plain Problem.
    """

    problem: Problem
    values: tuple[Any, ...]
    in_dims: tuple[int | None, ...]
    extras: int
    start_function: Callable[..., Any] | None = None
    solve_function: Callable[..., Any] | None = None

    @property
    def inputs(self) -> Inputs:
        """All inputs, extras included."""
        return Inputs(self.values, self.in_dims)

    @property
    def tensor_positions(self) -> tuple[int, ...]:
        """Positions of the inputs that are dense tensors, of any dtype."""
        return tuple(i for i, v in enumerate(self.values) if travels_as_tensor(v))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs that are tensors."""
        return tuple(self.values[i] for i in self.tensor_positions)

    @property
    def tensor_dims(self) -> tuple[int | None, ...]:
        """in_dims of the inputs that are tensors."""
        return tuple(self.in_dims[i] for i in self.tensor_positions)

    def with_tensors(self, tensors: tuple[Tensor, ...], dims: tuple[int | None, ...]) -> tuple[tuple[Any, ...], Any]:
        """Values and in_dims with the tensors replaced."""
        values, in_dims = list(self.values), list(self.in_dims)
        for position, tensor, dim in zip(self.tensor_positions, tensors, dims, strict=True):
            values[position], in_dims[position] = tensor, dim
        return tuple(values), tuple(in_dims)

    def instance(self, tensors: tuple[Tensor, ...], dims: Any, u: Tensor, p: int, q: int) -> Instance:
        """The instance at these tensors; p and q are already known."""
        values, in_dims = self.with_tensors(tensors, dims)
        return Instance(self.problem, values, in_dims, u.shape[1:], u.shape[0], p, q)

    def declare_captured(self, u: Tensor) -> Bound:
        """Find captured tensors at `u` and declare them as inputs."""

        def evaluate(function: Callable[..., Tensor]) -> Any:
            with torch.no_grad():  # on a copy of u, which a function that writes into it cannot spoil
                return vmap(function, in_dims=(*self.in_dims, 0))(*self.values, u.clone())

        if u.shape[0] == 0:
            return self
        captured = find_captured(self.problem, evaluate)
        if not captured:
            return self
        count = len(captured)
        return replace(
            self,
            problem=declare_captured(self.problem, captured),
            values=(*_visible(captured), *self.values),
            in_dims=(*(None,) * count, *self.in_dims),
            extras=self.extras + count,
            start_function=None if self.start_function is None else _skip(self.start_function, count),
            solve_function=None if self.solve_function is None else _skip(self.solve_function, count),
        )


def declares_problem(value: Any) -> bool:
    """Whether `value` is a Node: a module with an objective or constraints."""
    roles = ("objective", "equality", "inequality")
    return isinstance(value, torch.nn.Module) and any(callable(getattr(value, r, None)) for r in roles)


def bind(problem: Any, xs: tuple[Any, ...], in_dims: Any) -> Bound:
    """Check the inputs and lift a Node's parameters and buffers into them.

    Raises:
        InputTypeError, InputValueError: about the problem or an input.
    """
    inputs = read_inputs(_visible(xs), in_dims)
    if isinstance(problem, Problem):
        return Bound(problem, inputs.values, inputs.in_dims, 0)
    if not declares_problem(problem):
        raise InputTypeError(
            f"the first argument expects a tacit.Problem or a tacit.Node; received {describe(problem)}. "
            "Declare it: tacit.Problem(objective=lambda x, u: ...)."
        )
    return _lift_module(problem, inputs)


def _lift_module(module: torch.nn.Module, inputs: Inputs) -> Bound:
    values, places = _tensors_of(module)
    count = len(values)
    caller = _Caller(module)

    def lift(role: str) -> Callable[..., Any] | None:
        method = getattr(module, role, None)
        if method is None:
            return None
        if not callable(method):
            raise InputTypeError(f"{type(module).__name__}.{role} expects a method; received {describe(method)}.")
        if not count:
            return method

        def lifted(*args: Any) -> Any:
            replaced = {name: args[position] for name, position in places.items()}
            # tie_weights=True would leave a module that is registered twice with the replaced tensors (torch 2.13).
            return functional_call(caller, replaced, (role, *args[count:]), tie_weights=False)

        return lifted

    problem = Problem(lift("objective"), lift("equality"), lift("inequality"))
    if any(value.is_complex() for value in values):
        raise InputValueError(f"{type(module).__name__} expects real parameters and buffers; received complex ones.")
    return Bound(
        problem=problem,
        values=(*_visible(values), *inputs.values),
        in_dims=(*(None,) * count, *inputs.in_dims),
        extras=count,
        start_function=lift("start"),
        solve_function=lift("solve"),
    )


def _tensors_of(module: torch.nn.Module) -> tuple[tuple[Tensor, ...], dict[str, int]]:
    """Parameters and buffers, each once, and under which names, seen from a `_Caller`, each is to be replaced."""
    values: list[Tensor] = []
    known: dict[int, int] = {}
    places: dict[str, int] = {}
    for path, owner in module.named_modules(prefix="module"):  # a module that is registered twice comes once
        once = {"recurse": False, "remove_duplicate": False}
        for name, tensor in (*owner.named_parameters(**once), *owner.named_buffers(**once)):
            if id(tensor) not in known:
                known[id(tensor)] = len(values)
                values.append(tensor)
            places[f"{path}.{name}"] = known[id(tensor)]
    return tuple(values), places


def _visible(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Show tensors to the function of an enclosing problem, which replaces or collects those that it captured.

    A node inside a node may be handed a tensor that no operation has seen yet.
    """
    if torch._C._len_torch_function_stack() == 0:
        return values
    return tuple(v.view_as(v) if is_differentiable(v) else v for v in values)


class _Caller(torch.nn.Module):
    """Lets `functional_call`, which calls modules, call a method of one."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, role: str, *args: Any) -> Any:
        return getattr(self.module, role)(*args)


def _skip(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The same function, ignoring `count` leading arguments."""
    return lambda *args: function(*args[count:])
