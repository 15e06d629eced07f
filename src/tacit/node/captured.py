"""Tensors that a function uses without declaring them: closure variables, globals, modules in a list.

They are found by watching one evaluation, and then travel as declared inputs: whenever a function is called, every
use of a captured tensor is replaced by the value that was passed in for it. So their gradients, of any order, come from
the same rule as those of the inputs, and nothing is lost in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tacit.errors import CapturedTensorError
from tacit.problem import Problem, describe
from tacit.problem.calls import call_objective, call_rows
from tacit.shapes import Tensor

__all__ = ["declare_captured", "find_captured"]


def find_captured(problem: Problem, evaluate: Callable[[Callable[..., Tensor]], Any]) -> tuple[Tensor, ...]:
    """Return the tensors, not among its arguments, that the problem's functions use and that need a gradient.

    Args:
        evaluate: calls a per-sample function once on the inputs of the call.

    Raises:
        CapturedTensorError: a captured tensor belongs to an enclosing `torch.func` transform.
    """
    watch = _Watch(depth=len(torch._C._functorch.get_interpreter_stack() or ()))
    for role in ("objective", "equality", "inequality"):
        function = getattr(problem, role)
        if function is not None:
            evaluate(lambda *args, role=role, function=function: watch.call(role, function, args))
    return tuple(watch.captured.values())


def declare_captured(problem: Problem, captured: Sequence[Tensor]) -> Problem:
    """The same problem with the captured tensors as its first inputs."""
    if not captured:
        return problem
    names = [id(t) for t in captured]

    def lift(function: Callable[..., Tensor] | None) -> Callable[..., Tensor] | None:
        if function is None:
            return None

        def lifted(*args: Any) -> Tensor:
            with _Substitute(dict(zip(names, args, strict=False))):
                return function(*args[len(names) :])

        return lifted

    return Problem(lift(problem.objective), lift(problem.equality), lift(problem.inequality))


class _Watch(TorchFunctionMode):
    """Collects tensors that appear as arguments of operations without having been passed in or computed here.

    Args:
        depth: how many transforms enclose the call. What a deeper one has wrapped was made by the function itself.
    """

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.known: dict[int, Tensor] = {}  # holds the tensors too: an id may be reused once its tensor is gone
        self.captured: dict[int, Tensor] = {}

    def call(self, role: str, function: Callable[..., Tensor], args: tuple[Any, ...]) -> Tensor:
        # Tensors inside of an argument, in a dict say, have not been declared: they are captured like those of a closure.
        self._know([a for a in args if isinstance(a, Tensor)])
        with self:
            return call_objective(function, args) if role == "objective" else call_rows(function, role, args)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for tensor in _tensors((args, kwargs)):
            if id(tensor) in self.known or id(tensor) in self.captured:
                continue
            if _is_substituted(
                tensor
            ):  # a node inside a node: what the outer one captured is an input of the inner one
                self.captured[id(tensor)] = tensor
                continue
            if torch._C._functorch.maybe_get_level(tensor) > self.depth:
                self._look_inside(tensor)
                continue
            if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
                raise CapturedTensorError(
                    "a function of the problem uses a tensor that an enclosing torch.func transform (vmap, grad, jacrev, "
                    f"jvp ...) has wrapped, without receiving it as an input: {describe(tensor)}. Its derivative would be "
                    "silently wrong. Pass it as an input, argmin(problem, x, w, in_dims=(0, None)), and use the argument "
                    "in the function."
                )
            if tensor.requires_grad:
                self.captured[id(tensor)] = tensor
        result = func(*args, **kwargs)
        self._know(result)
        return result

    def _look_inside(self, tensor: Tensor) -> None:
        """Refuse a captured tensor that a transform inside the function has wrapped before any operation has seen it."""
        while torch._C._functorch.maybe_get_level(tensor) > self.depth + 1:  # the level of the samples themselves
            tensor = torch._C._functorch.get_unwrapped(tensor)
        if tensor.requires_grad and id(tensor) not in self.known:
            raise CapturedTensorError(
                f"a function of the problem hands a captured tensor, {describe(tensor)}, to a transform of its own (vmap, "
                "grad, ...), where its gradient cannot be followed. Pass it as an input, or use 1 * w inside the function."
            )

    def _know(self, values: Any) -> None:
        for tensor in _tensors(values):
            self.known[id(tensor)] = tensor


class _Substitute(TorchFunctionMode):
    """Replaces tensors by others wherever they appear as arguments."""

    def __init__(self, values: dict[int, Tensor]) -> None:
        super().__init__()
        self.values = values

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*self._swap(args), **self._swap(kwargs or {}))

    def _swap(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            inner = value
            while id(inner) not in self.values and torch._C._functorch.is_functorch_wrapped_tensor(inner):
                inner = torch._C._functorch.get_unwrapped(inner)  # a transform wraps what an argument holds inside
            return self.values.get(id(inner), value)
        if type(value) in (tuple, list):
            return type(value)(self._swap(v) for v in value)
        if type(value) is dict:
            return {key: self._swap(v) for key, v in value.items()}
        return value


def _is_substituted(tensor: Tensor) -> bool:
    """Whether an enclosing problem has another value in the place of this tensor."""
    modes = torch.overrides._get_current_function_mode_stack()
    return any(isinstance(mode, _Substitute) and id(tensor) in mode.values for mode in modes)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
