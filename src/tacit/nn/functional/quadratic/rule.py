"""The derivative of a quadratic program: the answer and its multipliers are one root. DDN[quadratic-program]

With `w = K^-1 (g_u, g_nu)` the gradients are outer products of w with the answer,

    dQ = -(w u' + u w')/2     dq = -w     dA = -(nu w' + w_nu u')     db = w_nu     (G and h as A and b)

and for what all samples share, their sum, formed by one product over the batch. Further derivatives and forward mode go
through the general engine, with the inverse made from the same factors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from tacit.implicit import Implicit, attach, pull_back, solve_attached
from tacit.nn.functional.quadratic.answer import Answer
from tacit.nn.functional.quadratic.arguments import declared
from tacit.node.transforms import is_transformed
from tacit.node.warn import report_flags
from tacit.problem import Instance
from tacit.problem.problem import Problem
from tacit.shapes import Float, Tensor

__all__ = ["Plan", "differentiate", "differentiate_forward"]


@dataclass
class Plan:
    """What the rule needs besides tensors: sizes, which inputs are batched, the policy, and the factors of plain calls.

    `problem` is another declaration than that of a quadratic program; then there are no factors, only the inverse.
    """

    dims: tuple[int | None, ...]
    p: int
    q: int
    policy: Implicit
    answer: Answer | None = None
    flags: list[Tensor] = field(default_factory=list)
    problem: Problem | None = None

    def instance(self, tensors: tuple[Tensor, ...], u: Tensor) -> Instance:
        """The declared problem at these inputs."""
        problem = declared(self.p, self.q) if self.problem is None else self.problem
        return Instance(problem, tensors, self.dims, u.shape[1:], u.shape[0], self.p, self.q)


State = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
"""u, nu, keep, dead, regular, and K^-1 or an empty tensor in its place."""


def differentiate(plan: Plan, state: State, tensors: tuple[Tensor, ...]) -> Tensor:
    """Return u with its derivatives in every input, for reverse mode."""
    return _Root.apply(plan, *state, *tensors)[0]


def differentiate_forward(plan: Plan, state: State, tensors: tuple[Tensor, ...], order: int) -> Tensor:
    """Return u with its derivatives up to an order, in plain operations."""
    u, nu, keep, dead, _, inverse = state
    shown = u
    tensors, u = _sound(plan, tensors, u, dead)
    u = attach(plan.instance(tensors, u), u, -nu, keep, inverse, order)[0]
    return torch.where(dead.unsqueeze(1), shown.detach(), u)


def _sound(plan: Plan, tensors: tuple[Tensor, ...], u: Tensor, dead: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """Zeros in the place of everything a dead sample brings, so that nothing downstream meets its NaN."""

    def clean(t: Tensor) -> Tensor:
        return torch.where(dead.reshape(-1, *(1,) * (t.dim() - 1)), 0.0, t)

    return tuple(clean(t) if d == 0 else t for t, d in zip(tensors, plan.dims, strict=True)), clean(u)


class _Root(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(plan: Plan, u: Tensor, nu: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
        return u.clone(), nu.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        plan, _, _, keep, dead, regular, inverse, *tensors = inputs
        ctx.plan = plan
        ctx.save_for_backward(*output, keep, dead, regular, inverse, *tensors)

    @staticmethod
    def backward(ctx: Any, grad_u: Tensor, grad_nu: Tensor) -> tuple[Tensor | None, ...]:
        u, nu, keep, dead, regular, inverse, *tensors = ctx.saved_tensors
        plan: Plan = ctx.plan
        needed = [i for i in range(len(tensors)) if ctx.needs_input_grad[7 + i]]
        for flags in plan.flags:
            report_flags(flags, plan.policy)
        answer = plan.answer
        grads: list[Tensor | None] = [None] * len(tensors)
        if torch.is_grad_enabled() or is_transformed() or answer is None:
            if inverse.numel() == 0 and answer is not None:
                with torch.no_grad():
                    inverse = answer.factors.inverse(answer.u)
            state = (u, nu, keep, dead, regular, inverse)
            for i, g in zip(needed, _attached(plan, tuple(tensors), state, grad_u, grad_nu, needed), strict=True):
                grads[i] = g
        else:
            if bool(answer.dead.any()):
                grad_u, u = (torch.where(dead.unsqueeze(1), 0.0, t) for t in (grad_u, u))
            w, w_nu = answer.factors.solve(grad_u.unsqueeze(2), grad_nu.unsqueeze(2))
            _outer_products(plan, u, nu, w.squeeze(2), w_nu.squeeze(2), needed, grads)
        return (None, None, None, None, None, None, None, *grads)


def _attached(
    plan: Plan, tensors: tuple[Tensor, ...], state: State, grad_u: Tensor, grad_nu: Tensor, needed: list[int]
) -> tuple[Tensor, ...]:
    """The same gradients in operations that can be differentiated again, in any nesting of transforms."""
    u, nu, keep, dead, regular, inverse = state
    tensors, u = _sound(plan, tensors, u, dead)
    instance = plan.instance(tensors, u)
    v = torch.where(dead.unsqueeze(1), 0.0, torch.cat([grad_u, torch.where(keep, grad_nu, 0.0)], 1))
    w = solve_attached(instance, u, -nu, keep, inverse, regular, v.unsqueeze(2)).squeeze(2)
    n = u.shape[1]
    w = torch.cat([w[:, :n], torch.where(keep, w[:, n:], 0.0)], 1)
    return pull_back(instance, u, -nu, w, needed)


def _outer_products(
    plan: Plan, u: Tensor, nu: Tensor, w: Tensor, w_nu: Tensor, needed: list[int], grads: list[Tensor | None]
) -> None:
    p = plan.p
    nu_A, nu_G, w_A, w_G = nu[:, :p], nu[:, p:], w_nu[:, :p], w_nu[:, p:]
    for i in needed:
        shared = plan.dims[i] is None
        if i == 0:
            product = _outer(w, u, shared)
            grads[0] = product.add_(product.mT.clone()).mul_(-0.5)
        elif i == 1:
            grads[1] = -(w.sum(0) if shared else w)
        elif i in (2, 4):
            multipliers, moved = (nu_A, w_A) if i == 2 else (nu_G, w_G)
            grads[i] = _two_outer(multipliers, w, moved, u, shared)
        else:
            moved = w_A if i == 3 else w_G
            grads[i] = moved.sum(0) if shared else moved.clone()


def _outer(left: Float[Tensor, "b k"], right: Float[Tensor, "b n"], shared: bool) -> Tensor:
    return left.mT @ right if shared else left.unsqueeze(2) * right.unsqueeze(1)


def _two_outer(nu: Tensor, w: Tensor, w_nu: Tensor, u: Tensor, shared: bool) -> Tensor:
    """-(nu w' + w_nu u'), summed over the batch for a shared matrix."""
    if shared:
        return torch.addmm(nu.mT @ w, w_nu.mT, u, beta=-1, alpha=-1)
    return torch.bmm(torch.stack([nu, w_nu], 2), torch.stack([w, u], 1)).neg_()
