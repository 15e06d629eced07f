"""A problem with its data: functions of the unknown alone, for a whole batch, and their derivatives in u.

Everything that solvers and gradients ever ask of a problem is asked here. The unknown is flat, `u (b, m)`; constraint
rows come stacked, equalities first: `rows = [h; g]`, `r = p + q` of them. Multipliers carry the paper's sign,
`L(u, lam) = f(u) - lam' rows(u)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch.func import grad, jacrev, vjp, vmap
from torch.utils._pytree import tree_map

from tacit.errors import FunctionError
from tacit.problem.calls import call_objective, call_rows
from tacit.problem.inputs import is_differentiable
from tacit.problem.problem import Problem
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Instance"]


@dataclass(frozen=True)
class Instance:
    """A `Problem` bound to a batch of inputs.

    Attributes:
        problem: what is asked.
        values: the inputs, batch at axis 0 where `in_dims` is 0, shared where it is None.
        in_dims: one entry per input.
        shape: shape of one sample's `u`.
        batch: number of samples.
        p, q: number of equality and inequality rows.
    """

    problem: Problem
    values: tuple[Any, ...]
    in_dims: tuple[int | None, ...]
    shape: torch.Size
    batch: int
    p: int
    q: int

    @property
    def m(self) -> int:
        """Number of unknowns of one sample."""
        return math.prod(self.shape)

    @property
    def r(self) -> int:
        """Number of constraint rows, `p + q`."""
        return self.p + self.q

    @property
    def has_objective(self) -> bool:
        """False for a feasibility problem."""
        return self.problem.objective is not None

    @classmethod
    def bind(
        cls, problem: Problem, values: tuple[Any, ...], in_dims: tuple[int | None, ...], u: Float[Tensor, "b *u"]
    ) -> Instance:
        """Bind and check: counts the rows by calling the constraints at `u`, and sees that everything depends on u.

        Raises:
            FunctionError: a function returns the wrong thing or ignores u.
        """
        instance = cls(problem, values, in_dims, u.shape[1:], u.shape[0], 0, 0)
        if instance.batch == 0:  # count rows on a made-up sample: the functions must see one to be called at all
            made_up = tuple(
                v.new_ones((1, *v.shape[1:])) if d == 0 else v for v, d in zip(values, in_dims, strict=True)
            )
            p, q = replace(instance, values=made_up, batch=1)._inspect(u.new_zeros((1, *u.shape[1:])))
        else:
            p, q = instance._inspect(u)
        return replace(instance, p=p, q=q)

    def take(self, index: Int[Tensor, " k"] | Bool[Tensor, " b"]) -> Instance:
        """The same problem for some of the samples only."""
        values = tuple(v[index] if d == 0 else v for v, d in zip(self.values, self.in_dims, strict=True))
        count = int(index.sum()) if index.dtype == torch.bool else len(index)
        return replace(self, values=values, batch=count)

    def input_size(self, u: Float[Tensor, "b m"]) -> Float[Tensor, " b"]:
        """Largest magnitude among a sample's floating inputs: the natural size of numbers where u itself is zero."""
        sizes = [u.new_zeros(self.batch)]
        for value, dim in zip(self.values, self.in_dims, strict=True):
            if is_differentiable(value) and value.numel() > 0:
                size = value.detach().abs()
                sizes.append(
                    size.flatten(1).amax(1) if dim == 0 and size.dim() > 1 else size if dim == 0 else size.amax()
                )
        return torch.stack([s.expand(self.batch) for s in sizes]).amax(0)

    def made_up(self) -> Instance:
        """One sample of ones in the place of an empty batch."""
        values = (
            v.new_ones((1, *v.shape[1:])) if d == 0 else v for v, d in zip(self.values, self.in_dims, strict=True)
        )
        return replace(self, values=tuple(values), batch=1)

    def with_values(self, values: tuple[Any, ...]) -> Instance:
        """The same problem at other inputs of the same shapes."""
        return replace(self, values=values)

    # ---- values -----------------------------------------------------------------------------------------------------

    def objective(self, u: Float[Tensor, "b m"]) -> Float[Tensor, " b"]:
        """f, zero for a feasibility problem."""
        return self.map(self.sample_objective, u)

    def rows(self, u: Float[Tensor, "b m"]) -> Float[Tensor, "b r"]:
        """[h; g]."""
        return self.map(self.sample_rows, u) if self.r else u.new_zeros((self.batch, 0))

    # ---- derivatives in u -------------------------------------------------------------------------------------------

    def gradient(self, u: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
        """f_Y = D_Y f, as a vector."""
        return self.map(grad(self.sample_objective), u) if self.has_objective else torch.zeros_like(u)

    def objective_and_gradient(self, u: Float[Tensor, "b m"]) -> tuple[Float[Tensor, " b"], Float[Tensor, "b m"]]:
        """f and f_Y in one evaluation."""
        if not self.has_objective:
            return u.new_zeros(self.batch), torch.zeros_like(u)
        gradient, value = self.map(torch.func.grad_and_value(self.sample_objective), u)
        return value, gradient

    def jacobian(self, u: Float[Tensor, "b m"]) -> Float[Tensor, "b r m"]:
        """A = D_Y [h; g], every row, active or not."""
        return self.map(jacrev(self.sample_rows), u) if self.r else u.new_zeros((self.batch, 0, self.m))

    def lagrangian_gradient(self, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]) -> Float[Tensor, "b m"]:
        """D_Y L = f_Y - lam' A, without forming A."""
        return self.map(grad(self.sample_lagrangian), u, lam)

    def hessian(self, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"] | None = None) -> Float[Tensor, "b m m"]:
        """H = D_YY L, or of f alone without `lam`."""
        if lam is None or not self.r:
            return self.map(jacrev(grad(self.sample_objective)), u)
        return self.map(jacrev(grad(self.sample_lagrangian)), u, lam)

    def hessian_product(
        self, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], w: Float[Tensor, "b m"]
    ) -> Float[Tensor, "b m"]:
        """H w at the cost of a few gradients; H is never formed."""

        def product(u: Tensor, lam: Tensor, w: Tensor, *xs: Any) -> Tensor:
            def slope(v: Tensor) -> Tensor:
                return grad(self.sample_lagrangian)(v, lam, *xs)

            return vjp(slope, u)[1](w)[0]

        return self.map(product, u, lam, w)

    def hessian_operator(self, u: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]) -> Callable[[Tensor], Tensor]:
        """The map w -> H w at one point, for many products: the gradient is traced once. On plain tensors only."""
        with torch.enable_grad():
            point = u.detach().clone().requires_grad_()
            slope = self.lagrangian_gradient(point, lam)

        def product(w: Tensor) -> Tensor:
            if not slope.requires_grad:  # L is linear in u
                return torch.zeros_like(w)
            found = torch.autograd.grad(slope, point, w, retain_graph=True, allow_unused=True)[0]
            return torch.zeros_like(w) if found is None else found

        return product

    def jacobian_product(self, u: Float[Tensor, "b m"], w: Float[Tensor, "b m"]) -> Float[Tensor, "b r"]:
        """A w."""

        def product(u: Tensor, w: Tensor, *xs: Any) -> Tensor:
            pull = vjp(lambda v: self.sample_rows(v, *xs), u)[
                1
            ]  # linear in its argument: its own pull-back pushes w forward
            return vjp(lambda v: pull(v)[0], torch.zeros(self.r, dtype=u.dtype, device=u.device))[1](w)[0]

        return self.map(product, u, w) if self.r else u.new_zeros((self.batch, 0))

    def jacobian_transpose_product(self, u: Float[Tensor, "b m"], v: Float[Tensor, "b r"]) -> Float[Tensor, "b m"]:
        """A' v."""

        def product(u: Tensor, v: Tensor, *xs: Any) -> Tensor:
            return vjp(lambda w: self.sample_rows(w, *xs), u)[1](v)[0]

        return self.map(product, u, v) if self.r else torch.zeros_like(u)

    def row_curvature(self, u: Float[Tensor, "b m"], d: Float[Tensor, "b m"]) -> Float[Tensor, "b r"]:
        """d' (D_YY [h; g]_i) d for every row i, to about half the digits, by differences along d."""
        if not self.r:
            return u.new_zeros((self.batch, 0))
        step = float(torch.finfo(u.dtype).eps) ** 0.25
        ahead, here, behind = (self.rows(u + t * d) for t in (step, 0.0, -step))
        return (ahead - 2 * here + behind) / step**2

    # ---- functions of one flat sample, u first, so that torch.func can take them apart ---------------------------------

    def map(self, function: Callable[..., Any], *batched: Tensor) -> Any:
        """Evaluate `function(*batched sample, *inputs)` for every sample."""
        if self.batch == 0:  # vmap itself cannot: what comes back has the shapes that one made-up sample gives
            batched = tuple(u.new_zeros((1, *u.shape[1:])) for u in batched)
            return tree_map(lambda result: result[:0], self.made_up().map(function, *batched))
        return vmap(function, in_dims=(0,) * len(batched) + self.in_dims)(*batched, *self.values)

    def sample_objective(self, u: Tensor, *xs: Any) -> Tensor:
        """f of one sample; u is flat."""
        if self.problem.objective is None:
            return 0.0 * u.sum()  # so that a Lagrangian's derivatives exist without special cases
        return call_objective(self.problem.objective, (*xs, u.reshape(self.shape)))

    def sample_rows(self, u: Tensor, *xs: Any) -> Tensor:
        """[h; g] of one sample; u is flat."""
        args = (*xs, u.reshape(self.shape))
        parts = []
        if self.problem.equality is not None:
            parts.append(call_rows(self.problem.equality, "equality", args, self.p))
        if self.problem.inequality is not None:
            parts.append(call_rows(self.problem.inequality, "inequality", args, self.q))
        return torch.cat(parts) if parts else u.new_zeros(0)

    def sample_lagrangian(self, u: Tensor, lam: Tensor, *xs: Any) -> Tensor:
        """L = f - lam' [h; g] of one sample."""
        value = self.sample_objective(u, *xs)
        return value - lam @ self.sample_rows(u, *xs) if self.r else value

    # ---- inspection -------------------------------------------------------------------------------------------------

    @cached_property
    def _roles(self) -> tuple[tuple[str, Any], ...]:
        problem = self.problem
        roles = (("objective", problem.objective), ("equality", problem.equality), ("inequality", problem.inequality))
        return tuple((role, function) for role, function in roles if function is not None)

    def _inspect(self, u: Float[Tensor, "b *u"]) -> tuple[int, int]:
        """Call each function once; return the row counts. A function without a path to u is refused."""
        counts = {"equality": 0, "inequality": 0}
        flat = u.detach().reshape(self.batch, -1)
        with torch.enable_grad():
            probe = flat.clone().requires_grad_()
            version = probe._version
            for role, function in self._roles:

                def call(u: Tensor, *xs: Any, role: str = role, function: Any = function) -> Tensor:
                    args = (*xs, u.reshape(self.shape))
                    return call_objective(function, args) if role == "objective" else call_rows(function, role, args)

                value = self.map(call, probe)
                if probe._version != version:
                    raise FunctionError(
                        f"{role} writes into u in place; u belongs to the solver. Build a new tensor instead."
                    )
                if role != "objective":
                    counts[role] = int(value.shape[1])
                    if counts[role] == 0:
                        continue
                self._check_dependence(role, value, probe)
        return counts["equality"], counts["inequality"]

    @staticmethod
    def _check_dependence(role: str, value: Tensor, probe: Tensor) -> None:
        path = torch.autograd.grad(value.sum(), probe, allow_unused=True)[0] if value.requires_grad else None
        if path is not None:
            return
        if role == "objective":
            raise FunctionError(
                "objective expects to depend on u through differentiable torch operations; received a value without any "
                "path to u (detached, computed under no_grad, or u unused). For a feasibility problem use objective=None."
            )
        raise FunctionError(
            f"{role} expects to depend on u through differentiable torch operations; received rows without any path to "
            "u. A condition on the inputs alone does not constrain the answer: leave it out."
        )
