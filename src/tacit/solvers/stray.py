"""Searches that ran off to where a function levels off: everything is small there, and nothing holds the point.

At infinity the conditions of optimality hold to any accuracy without a minimum being there. What gives it away is that
the point is far from its start and the conditions are singular: an answer out there would be isolated.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from tacit.linalg.dense import factor
from tacit.linalg.equilibrate import equilibrate
from tacit.problem import Instance, Status
from tacit.shapes import Bool, Float, Tensor
from tacit.solvers.base import Found
from tacit.solvers.linear import bordered
from tacit.solvers.optimality import active_rows, evaluate

__all__ = ["SUSPICIOUS", "strays", "without_strays"]

HOPELESS = 1e8
"""How far, relative to the start, a point that nothing holds is no answer."""

SUSPICIOUS = 1e3
"""How far it is one only if no other method knows better."""


@torch.no_grad()
def strays(instance: Instance, start: Float[Tensor, "b m"], found: Found, distance: float) -> Bool[Tensor, " b"]:
    """Which answers are further than `distance` from their start, in its size, and are held by nothing."""
    far = (found.u - start).abs().amax(1) > distance * start.abs().amax(1).clamp(min=1.0)
    index = (far & (found.status == Status.CONVERGED) & instance.has_objective).nonzero().squeeze(1)
    if not len(index):
        return torch.zeros_like(far)
    part, u = instance.take(index), found.u[index]
    lam = found.u.new_zeros(len(index), instance.r) if found.lam is None else found.lam[index]
    at = evaluate(part, u, lam)
    active = active_rows(at)
    K = bordered(at.H, torch.where(active[:, :, None], at.A, 0.0), (~active).to(u.dtype))
    factored = factor(K, equilibrate(K))
    loose = ~factored.ok | (factored.rcond < 10 * K.shape[-1] * torch.finfo(u.dtype).eps)
    return torch.zeros_like(far).index_copy(0, index, loose)


def without_strays(instance: Instance, start: Float[Tensor, "b m"], found: Found) -> Found:
    """The same result, where answers that ran off to infinity are STALLED instead."""
    lost = strays(instance, start, found, HOPELESS)
    return replace(found, status=torch.where(lost, int(Status.STALLED), found.status))
