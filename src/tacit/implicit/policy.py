"""How a gradient is to be taken: the exact implicit one with its choices, and approximations that say so by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import OptionTypeError
from tacit.linalg import Structure
from tacit.options import check_choice, check_count, check_flag, check_number, strict_options
from tacit.shapes import Tensor

__all__ = ["GradientPolicy", "Implicit", "OneStep", "Truncated", "Unrolled"]


class GradientPolicy:
    """Base of everything that can be given as `gradient=`."""


@strict_options
@dataclass(frozen=True)
class Implicit(GradientPolicy):
    """The exact gradient, by the implicit function theorem at the solution.

    Args:
        linear_solver: `"dense"` factors the KKT matrix, `"matrix-free"` needs only products with it; `"auto"` decides by
            size: dense up to `dense_limit` unknowns and rows.
        dense_limit: the size at which `"auto"` turns matrix-free.
        krylov_tol, krylov_max_iter: accuracy and effort of the matrix-free solve.
        preconditioner: for the matrix-free solve, a function `(b, N) -> (b, N)` that roughly solves with the KKT matrix.
        structure: `tacit.linalg.Diagonal()`, `BlockDiagonal(size)` or `Banded(bandwidth)`: what the Hessian is known to
            be; it is then recovered by a few products and solved in linear time.
        singular: at a singular KKT matrix, take the `"pinv"` minimum-norm gradient, that of the `"proximal"` problem with
            `delta/2 |u - y|^2` added, `"zero"`, or `"raise"`.
        delta: weight of the proximal term, relative to the size of the Hessian.
        weak: a weakly active inequality is taken as `"active"` (as ReLU'(0) = 0 does) or `"inactive"`.
        activity_tol: relative size under which a constraint value or multiplier counts as zero; None knows the dtype.
        stationarity_tol: relative error of y beyond which its gradient is refused (zero and flagged); None: 1e-6 in
            float64, 1e-3 in float32.
        on_failure: `"warn"` once a backward pass, `"raise"` a `GradientError`, or `"ignore"`; flags are set regardless.

    >>> Implicit(singular="proximal", delta=1e-4).singular
    'proximal'
    """

    linear_solver: str = "auto"
    dense_limit: int = 600
    krylov_tol: float | None = None
    krylov_max_iter: int | None = None
    preconditioner: Callable[[Tensor], Tensor] | None = None
    structure: Any = None
    singular: str = "pinv"
    delta: float = 1e-6
    weak: str = "active"
    activity_tol: float | None = None
    stationarity_tol: float | None = None
    on_failure: str = "warn"

    def __post_init__(self) -> None:
        check_choice("Implicit", "linear_solver", self.linear_solver, ("auto", "dense", "matrix-free"))
        check_choice("Implicit", "singular", self.singular, ("pinv", "proximal", "zero", "raise"))
        check_choice("Implicit", "weak", self.weak, ("active", "inactive"))
        check_choice("Implicit", "on_failure", self.on_failure, ("warn", "raise", "ignore"))
        check_count("Implicit", "dense_limit", self.dense_limit)
        check_number("Implicit", "delta", self.delta)
        for name in ("krylov_tol", "activity_tol", "stationarity_tol"):
            if getattr(self, name) is not None:
                check_number("Implicit", name, getattr(self, name))
        if self.krylov_max_iter is not None:
            check_count("Implicit", "krylov_max_iter", self.krylov_max_iter)
        if self.structure is not None and not isinstance(self.structure, Structure):
            raise OptionTypeError(
                "Implicit(structure=...) expects tacit.linalg.Diagonal(), BlockDiagonal(size) or Banded(bandwidth), or "
                f"None; received {self.structure!r}."
            )
        if self.preconditioner is not None and not callable(self.preconditioner):
            raise OptionTypeError(
                f"Implicit(preconditioner=...) expects a function (b, N) -> (b, N); received {self.preconditioner!r}."
            )

    def is_dense(self, size: int) -> bool:
        """Whether a KKT system of this size is factored."""
        if self.structure is not None:
            return False
        return self.linear_solver == "dense" or (self.linear_solver == "auto" and size <= self.dense_limit)

    def stationary_within(self, dtype: torch.dtype) -> float:
        """The relative error of y that is tolerated."""
        if self.stationarity_tol is not None:
            return self.stationarity_tol
        return 1e-3 if dtype == torch.float32 else 1e-6


@strict_options
@dataclass(frozen=True)
class Unrolled(GradientPolicy):
    """An approximation: differentiate through the solver's own last `steps` iterations.

    Memory and time grow with `steps`, and the gradient is only as converged as the iteration is. `steps=None` starts from
    `start` and runs as many steps as the solver took.
    """

    steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_count("Unrolled", "steps", self.steps)


@strict_options
@dataclass(frozen=True)
class Truncated(GradientPolicy):
    """An approximation: the inverse Hessian is replaced by `terms` terms of its Neumann series.

    `H^-1 v = rate * sum_k (I - rate H)^k v`, cut off; what `terms` steps of gradient descent would give. `rate=None` takes
    the reciprocal of an upper bound on |H|. For unconstrained problems.
    """

    terms: int = 10
    rate: float | None = None

    def __post_init__(self) -> None:
        check_count("Truncated", "terms", self.terms)
        if self.rate is not None:
            check_number("Truncated", "rate", self.rate)


@strict_options
@dataclass(frozen=True)
class OneStep(GradientPolicy):
    """An approximation: differentiate through one gradient step at the solution, `Dy = -rate B` (Jacobian-free).

    Exact for a solver whose last step lands on the solution whatever its start (Newton's method: use `newton=True`, which
    equals `Implicit` to first order).
    """

    rate: float | None = None
    newton: bool = False

    def __post_init__(self) -> None:
        check_flag("OneStep", "newton", self.newton)
        if self.rate is not None:
            check_number("OneStep", "rate", self.rate)
