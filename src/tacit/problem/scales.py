"""Natural sizes: how large a number must be, at one sample, to mean something.

Whether a row is active or a gradient vanishes cannot be decided by an absolute tolerance: constraints may be multiplied
by 1e6, unknowns measured in nanometres, and float32 knows seven digits. So every quantity is first divided by the size
it naturally has, built from y, from the inputs and from the curvature of the functions.
"""

from __future__ import annotations

import torch

from tacit.problem.instance import Instance
from tacit.shapes import Float, Tensor

__all__ = ["probe_direction", "root_eps", "unknown_scale"]


def root_eps(dtype: torch.dtype) -> float:
    """Half of the dtype's digits: the size under which a squared quantity drowns in rounding."""
    return float(torch.finfo(dtype).eps) ** 0.5


def unknown_scale(instance: Instance, y: Float[Tensor, "b m"], floor: float | None = None) -> Float[Tensor, "b m"]:
    """The natural size of every unknown: its own magnitude, or a share of the largest, or that of the inputs.

    An unknown much smaller than its fellows still counts as a quarter of the digits below them: 1e-4 in float64, 2e-2 in
    float32, so that half of the dtype's digits of it are more than a rounding of the largest. Another `floor` may be
    given, as a share of the largest.
    """
    floor = root_eps(y.dtype) ** 0.5 if floor is None else floor
    largest = y.abs().amax(1) if instance.batch else y.new_zeros(0)
    unit = torch.maximum(largest, instance.input_size(y).clamp_max(1.0))
    unit = torch.where(unit > 0, unit, torch.ones_like(unit))
    return torch.maximum(y.abs(), floor * unit[:, None])


def probe_direction(scale: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
    """A fixed direction of natural size with irregular signs and lengths, which no symmetric curvature annuls."""
    k = torch.arange(1, scale.shape[1] + 1, dtype=scale.dtype, device=scale.device)
    lengths = 0.75 + 0.5 * torch.frac(k * 0.6180339887498949)
    signs = torch.where(torch.frac(k * 0.7548776662466927) < 0.5, -1.0, 1.0).to(scale.dtype)
    return scale * lengths * signs
