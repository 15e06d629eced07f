"""Joins the implicit gradient to torch: a solution that came from anywhere becomes a differentiable function of the inputs.

The autograd rule treats `(y, lam)` together as the root of the KKT residual. Both are saved *as outputs*, live in the
graph, and the backward pass is written in differentiable operations: so second and higher derivatives follow by torch
differentiating the rule itself. Forward mode takes another road, Newton steps in plain operations, because torch
returns zero for nested forward derivatives of a custom function.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad

from tacit.errors import GradientError, GradientWarning
from tacit.implicit import Implicit, Linearisation, attach, linearise, pull_back, solve_attached
from tacit.node.binding import Bound
from tacit.node.concrete import Dims, concrete
from tacit.problem import Flag, Instance, flatten_samples
from tacit.problem.flags import MEANING
from tacit.shapes import Tensor

__all__ = ["Differentiable", "forward_mode_order", "is_transformed", "report_flags"]


@dataclass(frozen=True)
class Differentiable:
    """Everything about a call that does not depend on values: the problem, its row counts and the gradient policy."""

    bound: Bound
    p: int
    q: int
    policy: Implicit

    def instance(self, tensors: tuple[Tensor, ...], y: Tensor) -> Instance:
        """The problem at these inputs."""
        return self.bound.instance(tensors, self.bound.tensor_dims, y, self.p, self.q)

    def attach(self, y: Tensor, lam: Tensor, state: Tensor, failed: Tensor) -> tuple[Tensor, Tensor]:
        """Return y and lam with their derivatives in every input."""
        tensors = self.bound.tensors
        order = forward_mode_order(tensors)
        if order == 0:
            return _Root.apply(self, y, lam, state, failed, *tensors)
        seen = examine(self, tensors, y, lam, state, failed, refuse=True, explicit=True)
        instance = self.instance(seen.tensors, y)
        flat, lam = attach(instance, flatten_samples(y), lam, seen.keep, seen.inverse, order)
        return flat.reshape(y.shape), lam


@dataclass
class Examination:
    """A linearisation with, for samples that hold NaN, the inputs of a healthy neighbour in their place.

    Attributes:
        tensors, y, lam: the inputs and the solution, attached where they were, with broken samples replaced.
        keep, regular: rows that take part; samples whose K is simply inverted.
        inverse: K^-1, if it was asked for.
        known: the factorisation, on plain tensors; only where nothing is transformed.
        hopeless: every sample is broken.
    """

    tensors: tuple[Tensor, ...]
    y: Tensor
    lam: Tensor
    keep: Tensor
    regular: Tensor
    inverse: Tensor
    known: Linearisation
    hopeless: bool

    def solve(self, instance: Instance, v: Tensor, *, attached: bool) -> Tensor:
        """K^-1 v, with the graph of K or without; rows that do not take part stay out of it."""
        m = instance.m
        if attached:
            w = solve_attached(instance, flatten_samples(self.y), self.lam, self.keep, self.inverse, self.regular, v)
        else:
            w = self.known.solve(v)
        if instance.r:  # a slice that takes everything is an alias, which batched gradients have no rule for
            w = torch.cat([w[:, :m], torch.where(self.keep[..., None], w[:, m:], 0.0)], dim=1)
        return w


class _Root(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        rule: Differentiable, y: Tensor, lam: Tensor, state: Tensor, failed: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, Tensor]:
        return y.clone(), lam.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        rule, _, _, state, failed, *tensors = inputs
        ctx.rule = rule
        ctx.save_for_backward(*output, state, failed, *tensors)

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor, grad_lam: Tensor) -> tuple[Any, ...]:
        y, lam, state, failed, *tensors = _saved(ctx)
        needed = [i for i, t in enumerate(tensors) if t.is_floating_point() and ctx.needs_input_grad[5 + i]]
        grads: list[Tensor | None] = [None] * len(tensors)
        for i, gradient in zip(
            needed,
            _pull_back(ctx.rule, tuple(tensors), y, lam, state, failed, (grad_y, grad_lam), needed),
            strict=True,
        ):
            grads[i] = gradient
        return (None, None, None, None, None, *grads)


def _saved(ctx: Any) -> tuple[Tensor, ...]:
    try:
        return ctx.saved_tensors  # type: ignore[no-any-return]
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
    rule: Differentiable,
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
    return pull_back(instance, flatten_samples(seen.y), seen.lam, w, positions)


def examine(
    rule: Differentiable,
    tensors: tuple[Tensor, ...],
    y: Tensor,
    lam: Tensor,
    state: Tensor,
    failed: Tensor,
    *,
    refuse: bool,
    explicit: bool,
    report: Callable[[Tensor, Implicit], None] | None = None,
) -> Examination:
    """Linearise at plain values, whatever transforms are active, and say what is unusual.

    Args:
        refuse: give samples that are not stationary or did not converge a zero gradient (the backward pass does; a
            Jacobian at a given y does not).
        explicit: form K^-1, which transforms and further derivatives need.
    """
    notes: dict[str, Any] = {}
    tell = report_flags if report is None else report
    count = len(tensors)

    def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        *inputs, y, lam, state, failed = plain
        broken = _broken(rule, tuple(inputs), dims, y, lam)
        inputs, y, lam = _replaced(tuple(inputs), dims, y, lam, broken)
        instance = rule.bound.instance(inputs, dims[:count], y, rule.p, rule.q)
        known = linearise(
            instance, flatten_samples(y), lam, state, failed, rule.policy, broken=broken, refuse=refuse
        )
        tell(known.flags, rule.policy)
        bad = (known.flags & int(Flag.NONFINITE)) != 0
        notes.update(bad=bool(bad.any()), all=bool(bad.all()), known=known)
        inverse = known.explicit_inverse() if explicit else y.new_zeros((len(y), 0, 0))
        donors: tuple[Tensor, ...] = ()
        if notes["bad"]:
            inputs, y, lam = _replaced(inputs, dims, y, lam, bad)
            donors = tuple(t for t, d in zip((*inputs, y, lam), (*dims[:count], 0, 0), strict=True) if d == 0)
        return (known.keep, known.regular, bad, inverse, *donors)

    dims = (*rule.bound.tensor_dims, 0, 0, 0, 0)
    keep, regular, bad, inverse, *donors = concrete(code, dims, (*tensors, y, lam, state, failed))
    live = list(tensors) + [y, lam]
    if notes["bad"]:
        spare = iter(donors)
        for i, dim in enumerate((*rule.bound.tensor_dims, 0, 0)):
            if dim == 0:
                live[i] = torch.where(bad.reshape(-1, *(1,) * (live[i].dim() - 1)), next(spare), live[i])
    return Examination(tuple(live[:-2]), live[-2], live[-1], keep, regular, inverse, notes["known"], notes["all"])


def _broken(rule: Differentiable, tensors: tuple[Tensor, ...], dims: Dims, y: Tensor, lam: Tensor) -> Tensor:
    """Samples that hold NaN or infinity in an input, in y or in a multiplier."""
    broken = ~(flatten_samples(y).isfinite().all(1) & lam.isfinite().all(1))
    for tensor, dim in zip(tensors, dims, strict=False):
        if tensor.is_floating_point():
            finite = tensor.isfinite()
            broken = broken | (~finite.all() if dim is None else ~flatten_samples(finite).all(1))
    return broken


def _replaced(
    tensors: tuple[Tensor, ...], dims: Dims, y: Tensor, lam: Tensor, broken: Tensor
) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Put a healthy sample's numbers in the place of every broken one, so that nothing downstream meets a NaN."""
    if not bool(broken.any()) or bool(broken.all()):
        return tensors, y, lam
    donor = int((~broken).nonzero()[0, 0])

    def swap(t: Tensor, dim: int | None) -> Tensor:
        if dim is None:
            return t
        return torch.where(broken.reshape(-1, *(1,) * (t.dim() - 1)), t[donor : donor + 1], t)

    return tuple(swap(t, d) for t, d in zip(tensors, dims, strict=False)), swap(y, 0), swap(lam, 0)


def report_flags(flags: Tensor, policy: Implicit) -> None:
    """Warn once, or raise, naming samples and what their flags mean."""
    flagged = flags.nonzero().flatten().tolist()
    singular = [i for i in flagged if int(flags[i]) & Flag.SINGULAR]
    if singular and policy.singular == "raise":
        raise GradientError(f"samples {_list(singular)}: {MEANING[Flag.SINGULAR]}. Asked for by Implicit(singular='raise').")
    if not flagged or policy.on_failure == "ignore":
        return
    lines = []
    for flag in Flag:
        samples = [i for i in flagged if int(flags[i]) & flag]
        if samples:
            lines.append(f"  {flag.name}, samples {_list(samples)}: {MEANING[flag]}.")
    message = f"{len(flagged)} of {len(flags)} samples have an unusual gradient:\n" + "\n".join(lines)
    message += "\ntacit.regularity(problem, *inputs, y=y) tells more; on_failure='ignore' silences this."
    if policy.on_failure == "raise":
        raise GradientError(message)
    warnings.warn(message, GradientWarning, stacklevel=2)


def _list(samples: list[int]) -> str:
    head = ", ".join(str(i) for i in samples[:8])
    return head if len(samples) <= 8 else f"{head}, ... ({len(samples)} in all)"


def is_transformed() -> bool:
    """Whether any torch.func transform is active."""
    return bool(torch._C._functorch.get_interpreter_stack())


def forward_mode_order(tensors: tuple[Tensor, ...]) -> int:
    """How many derivatives must be right if forward mode is involved; 0 if it is not."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    kinds = [level.key() for level in stack]
    kind = torch._C._functorch.TransformType
    dual = forward_ad._current_level >= 0 and any(
        t.is_floating_point() and forward_ad.unpack_dual(t).tangent is not None
        for t in tensors
        if not torch._C._functorch.is_functorch_wrapped_tensor(t)
    )
    if kind.Jvp not in kinds and not dual:
        return 0
    levels = sum(k in (kind.Jvp, kind.Grad) for k in kinds) + dual
    return int(levels + 2 * (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)))
