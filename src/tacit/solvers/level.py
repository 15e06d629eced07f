"""Whether a function falls beside a point that looks like a minimum: an inflection, `u^3` at 0, passes every other test.

Where the least curvature vanishes, terms of higher order decide. They are read off values along that direction, at the
smallest distance where rounding lets them be seen.
"""

from __future__ import annotations

import torch

from tacit.problem import Instance
from tacit.shapes import Bool, Float, Tensor
from tacit.solvers.linear import eigen

__all__ = ["lower_beside"]

DISTANCES = (1e-4, 1e-3, 1e-2)
"""How far to look, relative to the size of u."""


def lower_beside(instance: Instance, u: Float[Tensor, "b m"]) -> tuple[Bool[Tensor, " b"], Float[Tensor, "b m"]]:
    """Beside which points the objective is lower, and where; without constraints.

    >>> import torch
    >>> from tacit.problem import Problem
    >>> cube, u = Problem(objective=lambda x, u: (x * u**3).sum()), torch.zeros(1, 1, dtype=torch.float64)
    >>> lower_beside(Instance.bind(cube, (u + 1,), (0,), u), u)
    (tensor([True]), tensor([[-0.0001]], dtype=torch.float64))
    """
    direction = eigen(instance.hessian(u))[1][:, :, 0]
    here, size = instance.objective(u), u.abs().amax(1).clamp(min=1.0)
    noise = 1e3 * torch.finfo(u.dtype).eps * here.abs()
    undecided, falls, point = here.isfinite(), torch.zeros_like(here, dtype=torch.bool), u
    for distance in DISTANCES:
        step = distance * size[:, None] * direction
        changes = [instance.objective(there) - here for there in (u + step, u - step)]
        least = torch.minimum(*changes)
        found = undecided & (least < -noise)
        nearby = u + torch.where(changes[0] <= changes[1], 1.0, -1.0)[:, None] * step
        falls, point = falls | found, torch.where(found[:, None], nearby, point)
        undecided = undecided & ~found & ~(least > noise)
    return falls, point
