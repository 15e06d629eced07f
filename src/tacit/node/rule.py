"""Joins the implicit gradient to torch: a solution that came from anywhere becomes a differentiable function of the inputs.

The autograd rule treats `(y, lam)` together as the root of the KKT residual. Both are saved *as outputs*, live in the
graph, and the backward pass is written in differentiable operations: so second and higher derivatives follow by torch
differentiating the rule itself. Forward mode takes another road, steps in plain operations, because torch returns zero
for nested forward derivatives of a custom function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tacit.errors import GradientError
from tacit.implicit import attach, pull_back, pull_back_rows
from tacit.node.examine import Examination, examine
from tacit.node.specification import Rule
from tacit.node.transforms import forward_mode_order, full_precision, is_batched, is_transformed
from tacit.node.warn import report_flags
from tacit.problem import Flag, Instance, flatten_samples
from tacit.shapes import Tensor

__all__ = ["differentiable", "finite_samples", "saved_tensors"]


def differentiable(rule: Rule, y: Tensor, lam: Tensor, state: Tensor, failed: Tensor) -> tuple[Tensor, Tensor]:
    """Return y and lam with their derivatives in every input.

    Raises:
        GradientError: forward mode is asked of a matrix-free gradient.
    """
    tensors = rule.bound.tensors
    order = forward_mode_order(tensors)
    if order == 0:
        return _Root.apply(rule, y, lam, state, failed, *tensors)
    if rule.matrix_free:
        raise GradientError(
            "a matrix-free gradient expects reverse mode; forward mode (jvp, jacfwd, hessian, dual numbers) was asked for. "
            "Use vjp, jacrev or backward, jacrev(jacrev(...)) for second derivatives, or "
            "gradient=tacit.Implicit(linear_solver='dense')."
        )
    seen = examine(rule, tensors, y, lam, state, failed, refuse=True, explicit=True)
    instance = rule.instance(seen.tensors, y)
    flat, lam = attach(instance, flatten_samples(y), lam, seen.keep, seen.inverse, order)
    return flat.reshape(y.shape), lam


class _Root(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        rule: Rule, y: Tensor, lam: Tensor, state: Tensor, failed: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, Tensor]:
        return y.clone(), lam.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        rule, _, _, state, failed, *tensors = inputs
        ctx.rule = rule
        ctx.set_materialize_grads(False)  # where only the optimal value is differentiated, nothing arrives here
        ctx.save_for_backward(*output, state, failed, *tensors)

    @staticmethod
    @full_precision
    def backward(ctx: Any, grad_y: Tensor | None, grad_lam: Tensor | None) -> tuple[Any, ...]:
        y, lam, state, failed, *tensors = saved_tensors(ctx)
        if grad_y is None and grad_lam is None:
            return (None,) * (5 + len(tensors))
        grads_in = (
            torch.zeros_like(y) if grad_y is None else grad_y,
            torch.zeros_like(lam) if grad_lam is None else grad_lam,
        )
        needed = [i for i, t in enumerate(tensors) if t.is_floating_point() and ctx.needs_input_grad[5 + i]]
        grads: list[Tensor | None] = [None] * len(tensors)
        for i, gradient in zip(
            needed,
            _pull_back(ctx.rule, tuple(tensors), y, lam, state, failed, grads_in, needed),
            strict=True,
        ):
            grads[i] = gradient
        return (None, None, None, None, None, *grads)


def saved_tensors(ctx: Any) -> tuple[Tensor, ...]:
    """What the forward pass saved.

    Raises:
        GradientError: it was modified in place since, or freed by an earlier backward pass.
    """
    try:
        return ctx.saved_tensors
    except RuntimeError as error:
        message = str(error)
        if "inplace" in message:
            raise GradientError(
                "backward expects the inputs of the node as they were in the forward pass; one was modified in place "
                f"since. Use an out-of-place operation, or pass x.clone() to the node. torch said: {message}"
            ) from error
        if "second time" in message:
            raise GradientError(
                "backward was called a second time through a node whose graph has been freed. Call the first one with "
                f"backward(retain_graph=True). torch said: {message}"
            ) from error
        raise


def _pull_back(
    rule: Rule,
    tensors: tuple[Tensor, ...],
    y: Tensor,
    lam: Tensor,
    state: Tensor,
    failed: Tensor,
    grads: tuple[Tensor, Tensor],
    needed: list[int],
) -> tuple[Tensor, ...]:
    if y.shape[0] == 0 or y.numel() == 0:
        return tuple(torch.zeros_like(tensors[i]) for i in needed)
    attached = torch.is_grad_enabled() or is_transformed()  # the backward pass itself may be differentiated
    seen = examine(rule, tensors, y, lam, state, failed, refuse=True, explicit=attached)
    if seen.hopeless:
        return tuple(torch.zeros_like(tensors[i]) for i in needed)
    instance = rule.instance(seen.tensors, y)
    v = flatten_samples(grads[0])
    if instance.r:
        v = torch.cat([v, torch.where(seen.keep, -grads[1], 0.0)], dim=1)
    w = seen.solve(instance, v[..., None], attached=attached)[..., 0]
    positions = [rule.bound.tensor_positions[i] for i in needed]
    found = pull_back(instance, flatten_samples(seen.y), seen.lam, w, positions)
    if is_transformed() or is_batched(w) or all(bool(g.isfinite().all()) for g in found):
        return found
    return _without_infinite(rule, instance, seen, w, positions)


def _without_infinite(
    rule: Rule, instance: Instance, seen: Examination, w: Tensor, positions: list[int]
) -> tuple[Tensor, ...]:
    """The gradient, zero for samples where a derivative in x is infinite; a shared input's sums those of the others."""
    rows = [g[:, 0] for g in pull_back_rows(instance, flatten_samples(seen.y), seen.lam, w[..., None], positions)]
    finite = finite_samples(rows) | ~w.isfinite().all(1)  # what came in as NaN goes out as NaN
    report_flags(~finite * int(Flag.NONFINITE), rule.policy)
    kept = [torch.where(finite.reshape(-1, *(1,) * (g.dim() - 1)), g, 0.0) for g in rows]
    return tuple(g if instance.in_dims[i] == 0 else g.sum(0) for i, g in zip(positions, kept, strict=True))


def finite_samples(rows: Sequence[Tensor]) -> Tensor:
    """Which samples are finite in all of these."""
    return torch.stack([flatten_samples(g).isfinite().all(1) for g in rows]).all(0)
