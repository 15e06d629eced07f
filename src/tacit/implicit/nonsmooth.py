"""DDN[nonsmooth] Non-smooth objective and constraints (section 4.6.2).

At a kink the gradient of the Lagrangian need not vanish; what must hold is that zero lies in its generalised gradient,
between the values it takes on the two sides. The derivative is then that of the smooth piece autograd picks, one
element of the generalised Jacobian, and it is flagged.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tacit.problem import Instance
from tacit.problem.scales import probe_direction, root_eps, unknown_scale
from tacit.shapes import Bool, Float, Tensor

__all__ = ["balances_at_kink", "has_kink"]

Measure = Callable[[Instance, Tensor, Tensor, Tensor], Tensor]

_MANY = 32  # up to this many unknowns, each is probed on its own


def _probes(scale: Float[Tensor, "b m"]) -> Float[Tensor, "k b m"]:
    """Directions of natural size: an irregular one, its alternation, and every axis of a small problem."""
    m = scale.shape[1]
    generic = probe_direction(scale)
    flip = torch.where(torch.arange(m, device=scale.device) % 2 == 0, 1.0, -1.0).to(scale.dtype)
    directions = [generic, generic * flip]
    if m <= _MANY:
        directions += list((torch.eye(m, dtype=scale.dtype, device=scale.device)[:, None, :] * scale).unbind(0))
    return torch.stack(directions)


def balances_at_kink(
    instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"], keep: Bool[Tensor, "b r"]
) -> Bool[Tensor, " b"]:
    """Whether zero lies between the gradients of the Lagrangian around y, coordinate by coordinate, and y is feasible."""
    scale = unknown_scale(instance, y)
    reach = 8 * root_eps(y.dtype)
    sides = [instance.lagrangian_gradient(y, lam)]
    for direction in _probes(scale):
        sides += [instance.lagrangian_gradient(y + sign * reach * direction, lam) for sign in (1.0, -1.0)]
    values = torch.stack(sides)
    low, high = values.amin(0), values.amax(0)
    jump = high - low
    margin = 1e-3 * jump.amax(1, keepdim=True)
    inside = ((low <= margin) & (high >= -margin)).all(1)
    smooth = (
        instance.hessian_product(y, lam, scale).abs().amax(1)
    )  # what the gradient may change over a distance of one
    real = jump.amax(1) > 100 * reach * smooth
    rows = instance.rows(y)
    length = (instance.jacobian(y).abs() * scale[:, None, :]).sum(2) if instance.r else rows
    feasible = (torch.where(keep, rows.abs(), rows) <= 1e-6 * length.clamp_min(1.0)).all(1)
    return inside & real & feasible


def has_kink(instance: Instance, y: Float[Tensor, "b m"], lam: Float[Tensor, "b r"]) -> Bool[Tensor, " b"]:
    """Whether first or second derivatives of the Lagrangian or the rows jump at y, found by probing around it.

    A smooth function's derivatives on the two sides approach each other as the probe shrinks; across a kink they do not,
    or at once, where y is so far from it only. What looks like a kink is looked at more closely: the first probes may be
    too long for an unknown that is small beside the others.
    """
    if instance.batch == 0:
        return torch.zeros(0, dtype=torch.bool, device=y.device)
    scale = unknown_scale(instance, y)
    found = torch.zeros(instance.batch, dtype=torch.bool, device=y.device)
    reach = 64 * root_eps(y.dtype)
    forces = instance.gradient(y)
    for direction in _probes(scale):
        bend = _curvatures(instance, y, lam, direction)
        slopes = torch.cat([forces, bend, instance.jacobian_product(y, direction)], dim=1)
        for measure, size in ((_gradients, slopes), (_curvatures, bend)):
            wide, narrow = (_sides(instance, y, lam, direction, measure, r) for r in (reach, reach / 8))
            base, jump = ((ahead - behind).abs().amax(1) for ahead, behind in (wide, narrow))
            drift = torch.stack([(far - near).abs().amax(1) for far, near in zip(wide, narrow, strict=True)]).amax(0)
            seems = (jump > 0.5 * base) & (drift < 0.5 * jump)  # each side by itself is smooth
            seems &= (jump > 1e3 * root_eps(y.dtype) * size.abs().amax(1)) & ~found
            if bool(seems.any()):
                there = (instance.take(seems), y[seems], lam[seems], direction[seems])
                found[seems] = _stays(*there, measure, reach / 8, jump[seems])
    return found


def _sides(
    instance: Instance, y: Tensor, lam: Tensor, direction: Tensor, measure: Measure, reach: float
) -> tuple[Tensor, Tensor]:
    ahead, behind = (measure(instance, y + r * direction, lam, direction) for r in (reach, -reach))
    return ahead, behind


def _stays(
    instance: Instance, y: Tensor, lam: Tensor, direction: Tensor, measure: Measure, reach: float, jump: Tensor
) -> Bool[Tensor, " b"]:
    """Whether the jump stays as the probe shrinks, or vanishes at once; that of a smooth function fades in proportion."""
    kink = torch.ones_like(jump, dtype=torch.bool)
    open_ = kink.clone()
    while reach > 64 * torch.finfo(y.dtype).eps and bool(open_.any()):
        reach /= 8
        ahead, behind = _sides(instance, y, lam, direction, measure, reach)
        now = (ahead - behind).abs().amax(1)
        kink &= ~(open_ & (now <= 0.5 * jump) & (now >= jump / 64))
        open_ &= ~(now <= 0.5 * jump)
        jump = now
    return kink


def _gradients(instance: Instance, u: Tensor, lam: Tensor, direction: Tensor) -> Tensor:
    return torch.cat([instance.lagrangian_gradient(u, lam), instance.jacobian_product(u, direction)], dim=1)


def _curvatures(instance: Instance, u: Tensor, lam: Tensor, direction: Tensor) -> Tensor:
    weights = torch.cos(torch.arange(1, instance.r + 1, dtype=u.dtype, device=u.device)).expand_as(lam)
    return torch.cat(
        [instance.hessian_product(u, lam, direction), instance.hessian_product(u, weights, direction)], dim=1
    )
