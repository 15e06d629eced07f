"""Looks at a solution on plain values, whatever transforms are active, and readies the linear solves its gradient needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tacit.implicit import Implicit, Linearisation, Survey, linearise, solve_attached, survey
from tacit.node.concrete import Dims, concrete
from tacit.node.free import solve_free
from tacit.node.specification import Rule
from tacit.node.warn import report_flags
from tacit.problem import Flag, Instance, flatten_samples
from tacit.shapes import Tensor

__all__ = ["Examination", "examine", "with_donors"]


@dataclass
class Examination:
    """A linearisation with, for samples that hold NaN, the inputs of a healthy neighbour in their place.

    Attributes:
        tensors, y, lam: the inputs and the solution, attached where they were, with broken samples replaced.
        keep, regular: rows that take part; samples whose K is simply inverted.
        inverse: K^-1, if it was asked for.
        known: the factorisation, on plain tensors; only where nothing is transformed. None if K is never formed.
        hopeless: every sample is broken.
    """

    tensors: tuple[Tensor, ...]
    y: Tensor
    lam: Tensor
    keep: Tensor
    regular: Tensor
    inverse: Tensor
    known: Linearisation | None
    hopeless: bool
    rule: Rule

    def solve(self, instance: Instance, v: Tensor, *, attached: bool) -> Tensor:
        """K^-1 v, with the graph of K or without; rows that do not take part stay out of it."""
        m, flat = instance.m, flatten_samples(self.y)
        if self.rule.matrix_free:
            columns = v.unbind(2)  # one iteration each: a Jacobian of a large problem is not what this is for
            w = torch.stack(
                [solve_free(self.rule, self.tensors, flat, self.lam, self.keep, self.regular, c) for c in columns], 2
            )
        elif attached:
            w = solve_attached(instance, flat, self.lam, self.keep, self.inverse, self.regular, v)
        else:
            assert self.known is not None  # for the type checker: a dense examination factors
            w = self.known.solve(v)
        if instance.r:  # a slice that takes everything is an alias, which batched gradients have no rule for
            w = torch.cat([w[:, :m], torch.where(self.keep[..., None], w[:, m:], 0.0)], dim=1)
        return w


def examine(
    rule: Rule,
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
        tensors, y, lam = _replaced(tuple(inputs), dims, y, lam, broken)
        instance = rule.bound.instance(tensors, dims[:count], y, rule.p, rule.q)
        flat = flatten_samples(y)
        if rule.matrix_free:
            found: Survey | Linearisation = survey(
                instance, flat, lam, state, failed, rule.policy, broken=broken, refuse=refuse
            )
            regular = ~found.dead
        else:
            found = linearise(instance, flat, lam, state, failed, rule.policy, broken=broken, refuse=refuse)
            regular = found.regular
        tell(found.flags, rule.policy)
        bad = (found.flags & int(Flag.NONFINITE)) != 0
        known = found if isinstance(found, Linearisation) else None
        notes.update(bad=bool(bad.any()), all=bool(bad.all()), known=known)
        inverse = known.explicit_inverse() if explicit and known is not None else y.new_zeros((len(y), 0, 0))
        donors: tuple[Tensor, ...] = ()
        if notes["bad"]:
            tensors, y, lam = _replaced(tensors, dims, y, lam, bad)
            donors = tuple(t for t, d in zip((*tensors, y, lam), (*dims[:count], 0, 0), strict=True) if d == 0)
        return (found.keep, regular, bad, inverse, *donors)

    dims = (*rule.bound.tensor_dims, 0, 0, 0, 0)
    keep, regular, bad, inverse, *donors = concrete(code, dims, (*tensors, y, lam, state, failed))
    live = [*tensors, y, lam]
    if notes["bad"]:
        live = _swapped_in((*tensors, y, lam), (*rule.bound.tensor_dims, 0, 0), donors, bad)
    y, lam = live[-2:]
    return Examination(tuple(live[:-2]), y, lam, keep, regular, inverse, notes["known"], notes["all"], rule)


def with_donors(
    rule: Rule, tensors: tuple[Tensor, ...], y: Tensor, lam: Tensor, without: Tensor
) -> tuple[tuple[Tensor, ...], Tensor, Tensor, bool]:
    """The inputs and the solution, live, with a sample that has an answer in the place of every one `without`.

    The last of the four says that none has. What is put in place has no graph: a weight of zero then meets no NaN.
    """
    notes: dict[str, bool] = {}

    def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        *inputs, y, lam, without = plain
        notes.update(any=bool(without.any()), all=bool(without.all()))
        if not notes["any"] or notes["all"]:
            return (without,)
        tensors, y, lam = _replaced(tuple(inputs), dims, y, lam, without)
        return (without, *(t for t, d in zip((*tensors, y, lam), dims, strict=False) if d == 0))

    dims = (*rule.bound.tensor_dims, 0, 0)
    _, *donors = concrete(code, (*dims, 0), (*tensors, y, lam, without))
    live = _swapped_in((*tensors, y, lam), dims, donors, without) if donors else [*tensors, y, lam]
    return tuple(live[:-2]), live[-2], live[-1], notes["all"]


def _swapped_in(live: tuple[Tensor, ...], dims: Dims, donors: list[Tensor], where: Tensor) -> list[Tensor]:
    """Donors, one for every batched tensor, in the place of the samples marked."""
    spare = iter(donors)
    return [
        t if d is None else torch.where(where.reshape(-1, *(1,) * (t.dim() - 1)), next(spare), t)
        for t, d in zip(live, dims, strict=True)
    ]


def _broken(rule: Rule, tensors: tuple[Tensor, ...], dims: Dims, y: Tensor, lam: Tensor) -> Tensor:
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
