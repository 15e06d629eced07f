"""The functions people call: argmin, solve, jacobian, regularity, value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from tacit.errors import InputTypeError, InputValueError, OptionTypeError, nearest
from tacit.implicit import Implicit, pull_back_rows
from tacit.implicit.policy import GradientPolicy
from tacit.implicit.report import Regularity, examine_regularity
from tacit.node.approximate import approximate
from tacit.node.binding import Bound, bind
from tacit.node.concrete import concrete
from tacit.node.envelope import envelope
from tacit.node.examine import examine
from tacit.node.locate import Located, Search, locate
from tacit.node.rule import differentiable, finite_samples
from tacit.node.specification import Rule
from tacit.node.transforms import full_precision, is_dual, is_transformed
from tacit.options import check_choice
from tacit.problem import Solution, Status, describe, flatten_samples
from tacit.shapes import Tensor

__all__ = ["OPTIONS", "argmin", "jacobian", "read_policy", "regularity", "reject_unknown", "solve", "value"]


@torch.compiler.disable
@full_precision
def argmin(
    problem: Any,
    *xs: Any,
    start: Any = None,
    solver: Any = None,
    in_dims: Any = 0,
    gradient: GradientPolicy | None = None,
    on_failure: str | None = None,
    **unknown: Any,
) -> Tensor:
    """Solve a declared problem for a batch; the result is differentiable in every input.

        y(x) = argmin_u f(x, u)   subject to   h(x, u) = 0,  g(x, u) <= 0

    Args:
        problem: a `Problem`, or a `Node`.
        xs: inputs, batch first; shared ones may be any object.
        start: batched tensor, or function of one sample's inputs: the shape of y and where the search begins.
        solver: a `tacit.solvers` object, any callable of the batched inputs, or None for the default.
        in_dims: which axis of each input is the batch, None for shared inputs; as in `torch.vmap`.
        gradient: an `Implicit` policy, or an approximation such as `Unrolled`.
        on_failure: `"warn"`, `"raise"` or `"ignore"`, for samples that do not converge or have an unusual gradient.

    Returns:
        y, `(b, *u)`, in the dtype and on the device of the inputs.

    Raises:
        InputTypeError, InputValueError, OptionError, FunctionError: about an argument; never about a value.

    >>> import torch, tacit
    >>> ball = tacit.Problem(
    ...     objective=lambda x, u: 0.5 * (u - x).square().sum(),
    ...     inequality=lambda x, u: u.square().sum()[None] - 1,
    ... )
    >>> x = torch.tensor([[3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    >>> y = tacit.argmin(ball, x, start=x)
    >>> y.detach().round(decimals=6)
    tensor([[0.6000, 0.8000]], dtype=torch.float64)
    >>> y.sum().backward()
    >>> x.grad.round(decimals=6)
    tensor([[ 0.0320, -0.0240]], dtype=torch.float64)
    """
    reject_unknown("argmin", unknown, OPTIONS)
    policy, on_failure = read_policy(gradient, on_failure)
    bound = bind(problem, xs, in_dims)
    if not isinstance(policy, Implicit):
        return approximate(bound, Search(start, solver, None, Implicit(), on_failure), policy)
    found = locate(bound, Search(start, solver, None, policy, on_failure))
    if not _wants_gradient(found.bound):
        return found.y
    return differentiable(_rule(found, policy), found.y, found.lam, found.state, found.failed)[0]


@torch.compiler.disable
@full_precision
def solve(
    problem: Any,
    *xs: Any,
    start: Any = None,
    solver: Any = None,
    in_dims: Any = 0,
    gradient: GradientPolicy | None = None,
    on_failure: str | None = None,
    **unknown: Any,
) -> Solution:
    """Solve, and tell all that is known of the answer: `y`, multipliers, residual, iterations and status per sample.

    Takes the arguments of `argmin`; every tensor of the result is detached.

    >>> import torch, tacit
    >>> line = tacit.Problem(lambda x, u: (u - x).square().sum(), equality=lambda x, u: u.sum()[None] - 1)
    >>> s = tacit.solve(line, torch.zeros(1, 2), start=torch.zeros(1, 2))
    >>> s.y, s.status
    (tensor([[0.5000, 0.5000]]), tensor([0]))
    """
    reject_unknown("solve", unknown, OPTIONS)
    policy, on_failure = read_policy(gradient, on_failure)
    policy = policy if isinstance(policy, Implicit) else Implicit()
    found = locate(bind(problem, xs, in_dims), Search(start, solver, None, policy, on_failure))
    return Solution(
        y=found.y,
        equality=found.lam[:, : found.p],
        inequality=found.lam[:, found.p :],
        residual=found.residual,
        iterations=found.iterations,
        status=found.status,
    )


@torch.compiler.disable
@full_precision
def jacobian(
    problem: Any,
    *xs: Any,
    y: Any = None,
    in_dims: Any = 0,
    gradient: GradientPolicy | None = None,
    **unknown: Any,
) -> Any:
    """Dy at a solution from anywhere: `(b, *y, *x)` for a batched input, `(b, *y, *whole x)` for a shared one.

    A tuple when there are several inputs; None for one that is not floating. Differentiable again, y included: whatever
    graph `y` has, it is taken as the function of the inputs that it is. At a flagged sample (see `regularity`) this is
    the formula's finite value under the policy `gradient`.

    >>> import torch, tacit
    >>> mean = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum())
    >>> x = torch.tensor([[1.0, 3.0]])
    >>> tacit.jacobian(mean, x, y=torch.tensor([[2.0]]))
    tensor([[[0.5000, 0.5000]]])
    """
    reject_unknown("jacobian", unknown, ("y", "in_dims", "gradient"))
    policy = _exact(gradient, "jacobian")
    bound = bind(problem, xs, in_dims)
    found = locate(bound, Search(y=_given(y), policy=policy))
    rule = _rule(found, policy)
    lam = found.lam
    y = found.y
    if _wants_gradient(found.bound):
        quiet = replace(rule, policy=replace(policy, on_failure="ignore"))
        y, lam = differentiable(quiet, found.y, found.lam, found.state, found.failed)
    blocks = _jacobian_blocks(rule, found, y, lam)
    return blocks[0] if len(xs) == 1 else blocks


def _jacobian_blocks(rule: Rule, found: Located, y: Tensor, lam: Tensor) -> tuple[Tensor | None, ...]:
    bound = found.bound
    own = range(bound.extras, len(bound.values))
    floating = [i for i in own if i in bound.inputs.floating]
    shape = y.shape
    shapes = {i: bound.values[i].shape[1:] if bound.in_dims[i] == 0 else bound.values[i].shape for i in floating}
    if y.shape[0] == 0:
        blocks = {i: y.new_zeros((*shape, *shapes[i])) for i in floating}
    else:
        live = is_transformed() or (torch.is_grad_enabled() and _wants_gradient(bound))
        seen = examine(
            rule, bound.tensors, y, lam, found.state, found.failed, refuse=False, explicit=live, report=_silence
        )
        if seen.hopeless:  # nothing finite to stand in for what is not
            return tuple(y.new_zeros((*shape, *shapes[i])) if i in floating else None for i in own)
        instance = rule.instance(seen.tensors, y)
        eye = torch.eye(instance.m + instance.r, instance.m, dtype=y.dtype, device=y.device)
        W = seen.solve(instance, eye.expand(y.shape[0], *eye.shape), attached=live)
        rows = pull_back_rows(instance, flatten_samples(seen.y), seen.lam, W, floating)
        finite = finite_samples((y, *rows))  # where a derivative in x is infinite, there is none
        rows = tuple(torch.where(finite.reshape(-1, *(1,) * (row.dim() - 1)), row, 0.0) for row in rows)
        blocks = {i: block.reshape((*shape, *shapes[i])) for i, block in zip(floating, rows, strict=True)}
    return tuple(blocks.get(i) for i in own)


@torch.compiler.disable
@full_precision
def regularity(
    problem: Any,
    *xs: Any,
    y: Any = None,
    in_dims: Any = 0,
    gradient: GradientPolicy | None = None,
    **unknown: Any,
) -> Regularity:
    """Say which assumptions hold at y, which fail, and what the gradient then means; prints as text.

    >>> import torch, tacit
    >>> relu = tacit.Problem(lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: -u)
    >>> r = tacit.regularity(relu, torch.tensor([[2.0], [0.0]]), y=torch.tensor([[2.0], [0.0]]))
    >>> r.flags
    tensor([0, 4])
    """
    reject_unknown("regularity", unknown, ("y", "in_dims", "gradient"))
    policy = _exact(gradient, "regularity")
    found = locate(bind(problem, xs, in_dims), Search(y=_given(y), policy=policy))
    rule = _rule(found, policy)

    def code(dims: Any, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        *tensors, y, lam, state, failed = plain
        instance = found.bound.instance(tuple(tensors), dims[: len(tensors)], y, rule.p, rule.q)
        return examine_regularity(instance, flatten_samples(y), lam, state, failed, policy)

    dims = (*found.bound.tensor_dims, 0, 0, 0, 0)
    flags, rcond, rank, least = concrete(
        code, dims, (*found.bound.tensors, found.y, found.lam, found.state, found.failed)
    )
    return Regularity(
        flags=flags, rcond=rcond, rank=rank, least_curvature=least, residual=found.residual, state=found.state,
        lam=found.lam, p=found.p, m=found.y[0:1].numel() if len(found.y) else 0, policy=policy,
    )  # fmt: skip


@torch.compiler.disable
@full_precision
def value(
    problem: Any,
    *xs: Any,
    start: Any = None,
    solver: Any = None,
    in_dims: Any = 0,
    gradient: GradientPolicy | None = None,
    on_failure: str | None = None,
    **unknown: Any,
) -> Tensor:
    """The optimal value v(x) = f(x, y(x)), `(b,)`, differentiated by the envelope theorem.

    The first derivative is that of the Lagrangian in x alone and needs no linear solve; the second is right too.

    >>> import torch, tacit
    >>> ball = tacit.Problem(lambda x, u: (u - x).square().sum(), inequality=lambda x, u: u.square().sum()[None] - 1)
    >>> x = torch.tensor([[3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    >>> v = tacit.value(ball, x, start=x)
    >>> v.item(), torch.autograd.grad(v.sum(), x)[0].round(decimals=6)
    (16.0, tensor([[4.8000, 6.4000]], dtype=torch.float64))
    """
    reject_unknown("value", unknown, OPTIONS)
    policy, on_failure = read_policy(gradient, on_failure)
    policy = policy if isinstance(policy, Implicit) else _exact(policy, "value")
    bound = bind(problem, xs, in_dims)
    if bound.problem.objective is None:
        raise InputValueError(
            "value expects a problem with an objective; received a feasibility problem (objective=None), whose value is "
            "zero everywhere."
        )
    found = locate(bound, Search(start, solver, None, policy, on_failure))
    y, lam = found.y, found.lam
    rule = _rule(found, policy)
    if _wants_gradient(found.bound):
        y, lam = differentiable(rule, y, lam, found.state, found.failed)
    return envelope(rule, y, lam, found.status != Status.CONVERGED)


OPTIONS = ("start", "solver", "in_dims", "gradient", "on_failure")


def _rule(found: Located, policy: Implicit) -> Rule:
    return Rule(found.bound, found.p, found.q, found.y.shape[1:], policy)


def _wants_gradient(bound: Bound) -> bool:
    """Whether anything could ever ask for a derivative of this call."""
    return is_transformed() or any(
        t.is_floating_point() and ((t.requires_grad and torch.is_grad_enabled()) or is_dual(t)) for t in bound.tensors
    )


def read_policy(gradient: Any, on_failure: str | None) -> tuple[GradientPolicy, str]:
    """Check `gradient` and `on_failure`, and give the second to the first."""
    if gradient is None:
        gradient = Implicit()
    if not isinstance(gradient, GradientPolicy):
        hint = f" Write {gradient.__name__}()." if isinstance(gradient, type) else ""
        raise InputTypeError(
            f"gradient expects tacit.Implicit(...) or another policy; received {describe(gradient)}.{hint}"
        )
    if on_failure is None:
        return gradient, gradient.on_failure if isinstance(gradient, Implicit) else "warn"
    check_choice("argmin", "on_failure", on_failure, ("warn", "raise", "ignore"))
    return (replace(gradient, on_failure=on_failure) if isinstance(gradient, Implicit) else gradient), on_failure


def _exact(gradient: Any, name: str) -> Implicit:
    policy = read_policy(gradient, None)[0]
    if not isinstance(policy, Implicit):
        raise InputTypeError(
            f"{name} expects the exact gradient, tacit.Implicit(...); received {describe(gradient)}: approximations exist "
            "only for argmin."
        )
    return policy


def _given(y: Any) -> Any:
    if y is None:
        raise InputTypeError("y expects the solution, a batched tensor; received None. tacit.solve(...).y finds it.")
    return y


def _silence(flags: Tensor, policy: Implicit) -> None:
    """A Jacobian at a given y does not warn: `regularity` is where its flags are read."""


def reject_unknown(function: str, unknown: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse keywords that are no options, naming the nearest that is one."""
    for name in unknown:
        raise OptionTypeError(
            f"{function} has no option '{name}'.{nearest(name, known)} Inputs are positional; its options: "
            f"{', '.join(known)}."
        )
