"""A matrix-free solve with K as a differentiable function of everything K depends on."""

from __future__ import annotations

from typing import Any

import torch
from torch.func import grad

from tacit.implicit import kkt_product, solve_matrix_free
from tacit.node.concrete import Dims, concrete
from tacit.node.specification import Rule
from tacit.node.warn import report_flags
from tacit.problem import Flag
from tacit.shapes import Tensor

__all__ = ["solve_free"]


def solve_free(
    rule: Rule, tensors: tuple[Tensor, ...], y: Tensor, lam: Tensor, keep: Tensor, regular: Tensor, v: Tensor
) -> Tensor:
    """K^-1 v, zero for samples that are not `regular`; y is flat.

    The derivative of a solve is another solve: `dw = K^-1 (dv - dK w)`, so any order of reverse mode follows.
    """
    return _Solve.apply(rule, keep, regular, v, y, lam, *tensors)


class _Solve(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        rule: Rule, keep: Tensor, regular: Tensor, v: Tensor, y: Tensor, lam: Tensor, *tensors: Tensor
    ) -> Tensor:
        def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            *inputs, keep, regular, v, y, lam = plain
            count = len(inputs)
            instance = rule.bound.instance(tuple(inputs), dims[:count], y.reshape(len(y), *rule.shape), rule.p, rule.q)
            w, trouble = solve_matrix_free(instance, y, lam, keep, v, rule.policy)
            trouble = trouble & regular
            report_flags(trouble * int(Flag.SINGULAR), rule.policy)
            kept = regular & ~trouble if rule.policy.singular == "zero" else regular
            return (torch.where(kept[:, None] & w.isfinite().all(1, keepdim=True), w, 0.0),)

        dims = (*rule.bound.tensor_dims, 0, 0, 0, 0, 0)
        return concrete(code, dims, (*tensors, keep, regular, v, y, lam))[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        rule, keep, regular, _, y, lam, *tensors = inputs
        ctx.rule = rule
        ctx.save_for_backward(keep, regular, output, y, lam, *tensors)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        keep, regular, w, y, lam, *tensors = ctx.saved_tensors
        rule: Rule = ctx.rule
        s = solve_free(rule, tuple(tensors), y, lam, keep, regular, g)
        floating = [i for i, t in enumerate(tensors) if t.is_floating_point()]

        def paired(y: Tensor, lam: Tensor, *chosen: Tensor) -> Tensor:
            current = list(tensors)
            for i, t in zip(floating, chosen, strict=True):
                current[i] = t
            instance = rule.instance(tuple(current), y)
            return (s * kkt_product(instance, y, lam, keep, w)).sum()

        wanted = tuple(range(2 + len(floating)))
        found = grad(paired, argnums=wanted)(y, lam, *(tensors[i] for i in floating))
        grads: list[Tensor | None] = [None] * len(tensors)
        for i, gradient in zip(floating, found[2:], strict=True):
            grads[i] = -gradient
        return (None, None, None, s, -found[0], -found[1], *grads)
