"""DDN[approximations] Gradients that are approximations, and say so by name: unrolled, truncated, one-step.

All three differentiate through iterations written in plain operations, starting from a point without a graph. A gradient
step at the solution multiplies the error of the derivative by `I - rate H`; so `terms` of them give the Neumann series

    Dy ~ -rate sum_{k < terms} (I - rate H)^k B,        Dy = -H^-1 B in the limit.
"""

from __future__ import annotations

from typing import Any

import torch

from tacit.errors import InputTypeError, InputValueError
from tacit.implicit import attach
from tacit.implicit.policy import GradientPolicy, Implicit, OneStep, Truncated, Unrolled
from tacit.node.binding import Bound
from tacit.node.examine import examine, with_donors
from tacit.node.locate import Located, Search, locate
from tacit.node.specification import Rule
from tacit.problem import Instance, flatten_samples
from tacit.problem.scales import probe_direction
from tacit.shapes import Tensor

__all__ = ["approximate"]


def approximate(bound: Bound, search: Search, policy: GradientPolicy) -> Tensor:
    """y with an approximate gradient.

    Raises:
        InputTypeError, InputValueError: the approximation does not apply to this problem or solver.
    """
    if isinstance(policy, Unrolled) and not hasattr(search.solver, "step"):
        raise InputTypeError(
            "Unrolled expects a solver with a differentiable `step(instance, u) -> u`, such as "
            f"tacit.solvers.GradientDescent(rate=...); received solver={search.solver!r}. Any frozen dataclass with solve and "
            "step will do."
        )
    found = locate(bound, search)
    rule = Rule(found.bound, found.p, found.q, found.y.shape[1:], Implicit(linear_solver="dense", on_failure="ignore"))
    if isinstance(policy, OneStep) and policy.newton:
        return _newton_step(rule, found)
    if found.p + found.q:
        raise InputValueError(
            f"{type(policy).__name__} expects a problem without constraints; received {found.p} equality and {found.q} "
            "inequality rows. Use OneStep(newton=True), or the exact gradient, tacit.Implicit()."
        )
    tensors, y, _, hopeless = with_donors(rule, found.bound.tensors, found.y, found.lam, found.failed)
    if hopeless and len(found.y):
        return found.y
    instance = rule.instance(tensors, y)
    if isinstance(policy, Unrolled):
        u = _unrolled(instance, found, y, search, policy)
    elif isinstance(policy, (Truncated, OneStep)):
        u = _steps(instance, flatten_samples(y), policy)
    else:
        raise InputTypeError(f"gradient expects a policy of tacit; received {policy!r}.")
    y = u.reshape(found.y.shape)
    return torch.where(found.failed.reshape(-1, *(1,) * (y.dim() - 1)), found.y, y)


def _newton_step(rule: Rule, found: Located) -> Tensor:
    seen = examine(rule, found.bound.tensors, found.y, found.lam, found.state, found.failed, refuse=True, explicit=True)
    instance = rule.instance(seen.tensors, found.y)
    return attach(instance, flatten_samples(found.y), found.lam, seen.keep, seen.inverse, 1)[0].reshape(found.y.shape)


def _steps(instance: Instance, y: Tensor, policy: Truncated | OneStep) -> Tensor:
    rate: Any = policy.rate
    if rate is None:
        rate = 1.0 / _largest_curvature(instance, y)
    u = y
    for _ in range(policy.terms if isinstance(policy, Truncated) else 1):
        u = u - rate * instance.gradient(u)
    return u


def _unrolled(instance: Instance, found: Located, y: Tensor, search: Search, policy: Unrolled) -> Tensor:
    """The last `steps` iterations, or all of them from the start."""
    solver = search.solver
    if policy.steps is not None:
        u = flatten_samples(y)
        count = policy.steps
    else:
        u = flatten_samples(found.start)
        failed = found.failed[:, None]
        u = torch.where(failed, flatten_samples(y), u)  # their own start may be NaN
        count = int(found.iterations.max()) if len(found.iterations) else 0
    for _ in range(count):
        u = solver.step(instance, u)
    return u


def _largest_curvature(instance: Instance, y: Tensor) -> Tensor:
    """An upper estimate of |H| per sample by a few power steps, without a graph of its own."""
    lam = y.new_zeros(y.shape[0], 0)
    w = probe_direction(torch.ones_like(y))
    with torch.no_grad():
        for _ in range(8):
            w = w / w.norm(dim=1, keepdim=True).clamp_min(1e-30)
            w = instance.hessian_product(y, lam, w)
        size = 1.1 * w.norm(dim=1, keepdim=True)
    return torch.where(size > 0, size, 1.0)
