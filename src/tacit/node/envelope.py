"""DDN[envelope] The optimal value and its gradient without a linear solve (section 4.1, "Learning").

    v(x) = f(x, y(x))        D v = D_X L(x, y, lam) = D_X f - lam' D_X [h; g]

(The paper prints `D f` where `D_X f` is meant, and states it without constraints; with them the Lagrangian takes f's
place.) The backward pass reads y and lam live, so differentiating it again brings in their derivatives: the second
derivative of v is right.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.func import grad

from tacit.node.examine import with_donors
from tacit.node.rule import saved_tensors
from tacit.node.specification import Rule
from tacit.node.transforms import forward_mode_order, full_precision
from tacit.problem import Instance, flatten_samples
from tacit.shapes import Tensor

__all__ = ["envelope"]


def envelope(rule: Rule, y: Tensor, lam: Tensor, failed: Tensor) -> Tensor:
    """f at the solution, `(b,)`; y and lam attached, from `differentiable`. A sample that `failed` has no gradient."""
    tensors = rule.bound.tensors
    if forward_mode_order(tensors):  # plain operations: L_Y and the active rows vanish, so this is D_X L, and more
        chosen, u, mu, hopeless = with_donors(rule, tensors, y, lam, failed)
        value = rule.instance(tensors, y).objective(flatten_samples(y)).detach()
        if hopeless:
            return value
        return torch.where(failed, value, _lagrangian(rule.instance(chosen, u), flatten_samples(u), mu))
    return _Envelope.apply(rule, y, lam, failed, *tensors)


def _lagrangian(instance: Instance, u: Tensor, lam: Tensor) -> Tensor:
    return instance.map(instance.sample_lagrangian, u, lam)


class _Envelope(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(rule: Rule, y: Tensor, lam: Tensor, failed: Tensor, *tensors: Tensor) -> Tensor:
        return rule.instance(tensors, y).objective(flatten_samples(y))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        rule, y, lam, failed, *tensors = inputs
        ctx.rule = rule
        ctx.save_for_backward(y, lam, failed, *tensors)

    @staticmethod
    @full_precision
    def backward(ctx: Any, grad_v: Tensor) -> tuple[Any, ...]:
        y, lam, failed, *saved = saved_tensors(ctx)
        tensors = tuple(saved)
        rule: Rule = ctx.rule
        needed = [i for i, t in enumerate(tensors) if t.is_floating_point() and ctx.needs_input_grad[4 + i]]
        grads: list[Tensor | None] = [torch.zeros_like(t) if i in needed else None for i, t in enumerate(tensors)]
        if y.shape[0] == 0 or not needed:  # vmap cannot run over no samples
            return (None, None, None, None, *grads)
        weight = torch.where(failed, 0.0, grad_v)
        tensors, y, lam, hopeless = with_donors(rule, tensors, y, lam, failed)
        if hopeless:
            return (None, None, None, None, *grads)

        def total(*chosen: Tensor) -> Tensor:
            current = list(tensors)
            for i, t in zip(needed, chosen, strict=True):
                current[i] = t
            return (weight * _lagrangian(rule.instance(tuple(current), y), flatten_samples(y), lam)).sum()

        found = grad(total, argnums=tuple(range(len(needed))))(*(tensors[i] for i in needed))
        for i, g in zip(needed, found, strict=True):
            grads[i] = g
        return (None, None, None, None, *grads)
