"""How a layer under test is built, fed, asked for gradients and compared. The tests themselves are in `contract.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest import SkipTest

import torch

from tacit.errors import TacitWarning
from tacit.node import Node
from tacit.problem import is_differentiable, read_inputs
from tacit.shapes import Tensor

__all__ = ["Harness", "marked", "quiet"]

F = TypeVar("F", bound=Callable[..., Any])


def marked(*names: str) -> Callable[[F], F]:
    """Decorator: words that a conftest turns into marks of pytest, which the library does not import.

    >>> @marked("slow")
    ... def test(): ...
    >>> test.marks
    ('slow',)
    """

    def mark(test: F) -> F:
        test.marks = names  # type: ignore[attr-defined]
        return test

    return mark


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, a warning about a sample is no error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        yield


class Harness:
    """What a subclass of `NodeContract` says about its layer, and the tools that the tests share.

    Attributes:
        in_dims: the batch axis of every input, 0, or None for one that is shared; as in `argmin`.
        problem_in_dims: the same for the inputs of the declared problem, where `problem_inputs` changes them.
        start_nudge: how far from y, relatively, the solver of the declared problem begins.
        problem_solver: the solver of the declared problem; None for the default.
        differentiable_twice: whether second derivatives are promised.
        forward_mode: whether `jacfwd` is promised.
        vectorises: whether `torch.vmap` is promised.
        isolates_samples: whether a sample of NaN leaves the others alone.
        autocasts: whether the layer runs under autocast.
        compiles: "fullgraph", "breaks" (it may break the graph), or None to leave it out.
    """

    in_dims: Any = 0
    problem_in_dims: Any = None
    start_nudge = 1e-2
    problem_solver: Any = None
    differentiable_twice = True
    forward_mode = True
    vectorises = True
    isolates_samples = True
    autocasts = True
    compiles: str | None = "breaks"

    # ---- what a subclass says ---------------------------------------------------------------------------------------

    def build(self) -> torch.nn.Module:
        """Return a fresh layer, the same one every time."""
        raise NotImplementedError(f"{type(self).__name__} expects a method build(self) that returns the layer.")

    def inputs(self) -> tuple[Any, ...]:
        """Return the inputs of the layer, a tuple."""
        raise NotImplementedError(
            f"{type(self).__name__} expects a method inputs(self) that returns a tuple of inputs."
        )

    def call(self, layer: torch.nn.Module, *xs: Any) -> Tensor:
        """Return the answer of the layer, batch first: override where it returns more than y."""
        return layer(*xs)

    def problem(self, layer: torch.nn.Module) -> Any:
        """Return the declared twin: a Node is its own, another layer has a method `problem()`."""
        return layer if isinstance(layer, Node) else layer.problem()  # type: ignore[operator]

    def problem_inputs(self, layer: torch.nn.Module, *xs: Any) -> tuple[Any, ...]:
        """Return the inputs of `problem` for these of the layer: override where it takes the layer's parameters too."""
        return xs

    def tolerance(self, dtype: torch.dtype) -> float:
        """Return what counts as equal, relative to the largest entry: half the digits."""
        return float(torch.finfo(dtype).eps ** 0.5)

    # ---- tools ------------------------------------------------------------------------------------------------------

    def ready(self, dtype: torch.dtype = torch.float64, grad: bool = False) -> tuple[torch.nn.Module, tuple[Any, ...]]:
        """Return a fresh layer and its inputs in `dtype`; parameters and inputs require a gradient or do not."""
        layer = self.build().to(dtype).requires_grad_(grad)
        xs = tuple(self._copied(x, dtype, grad) for x in self.inputs())
        return layer, xs

    @staticmethod
    def _copied(x: Any, dtype: torch.dtype, grad: bool) -> Any:
        return x.detach().to(dtype, copy=True).requires_grad_(grad) if is_differentiable(x) else x

    def dims(self, xs: tuple[Any, ...]) -> tuple[int | None, ...]:
        """Return `in_dims`, one entry per input."""
        return read_inputs(xs, self.in_dims).in_dims

    def dims_of_problem(self) -> Any:
        """Return the `in_dims` of the declared problem's inputs."""
        return self.in_dims if self.problem_in_dims is None else self.problem_in_dims

    def sliced(self, xs: tuple[Any, ...], part: slice) -> tuple[Any, ...]:
        """Return some of the samples."""
        return tuple(x[part] if d == 0 else x for x, d in zip(xs, self.dims(xs), strict=True))

    def answer(
        self, layer: torch.nn.Module, xs: tuple[Any, ...], call: Callable[..., Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor | None]]:
        """Return y and the gradients in the inputs of one fixed linear function of it; None for what has none."""
        leaves = [x.detach().requires_grad_() if is_differentiable(x) else x for x in xs]  # strides kept
        y = self.call(layer, *leaves) if call is None else call(*leaves)
        sources = [x for x in leaves if is_differentiable(x)]
        found = iter(torch.autograd.grad(y, sources, self.cotangent(y), materialize_grads=True))
        return y.detach(), [next(found) if is_differentiable(x) else None for x in leaves]

    @staticmethod
    def cotangent(y: Tensor, shift: int = 0) -> Tensor:
        """Return a fixed vector without symmetry to pull back, the same for a sample wherever it is in the batch."""
        count = y[:1].numel() if y.shape[0] else 0
        one = torch.cos(torch.arange(count, dtype=y.dtype, device=y.device) + 0.5 + shift)
        return one.reshape(y[:1].shape).expand_as(y) if count else torch.zeros_like(y)

    def assert_equal(self, found: Tensor, wanted: Tensor, what: str, tolerance: float | None = None) -> None:
        """Insist that two tensors agree, relative to the largest entry."""
        tolerance = self.tolerance(wanted.dtype) if tolerance is None else tolerance
        size = max(1.0, float(wanted.detach().abs().amax())) if wanted.numel() else 1.0
        torch.testing.assert_close(
            found, wanted, atol=tolerance * size, rtol=tolerance, msg=lambda text: f"{what} differ. {text}"
        )

    @staticmethod
    def only_if(promised: Any, why_not: str) -> None:
        """Skip a test that does not apply."""
        if not promised:
            raise SkipTest(why_not)
