"""Outliers by the paper's protocol: a share of the points is replaced by uniform samples of the unit ball."""

from __future__ import annotations

import torch

from tacit.shapes import Bool, Float, Tensor

__all__ = ["in_unit_ball", "with_outliers"]


def in_unit_ball(*shape: int, generator: torch.Generator) -> Float[Tensor, "*shape 3"]:
    """Return points drawn uniformly from the ball of radius 1, on the generator's device."""
    direction = torch.randn(*shape, 3, generator=generator, device=generator.device)
    radius = torch.rand(*shape, 1, generator=generator, device=generator.device) ** (1 / 3)
    return torch.nn.functional.normalize(direction, dim=-1) * radius


def with_outliers(
    points: Float[Tensor, "b n 3"],
    share: float,
    generator: torch.Generator,
    mask: Bool[Tensor, "b n"] | None = None,
) -> tuple[Float[Tensor, "b n 3"], Bool[Tensor, "b n"]]:
    """Return the clouds with `round(share * count)` points of each replaced, and which ones those are.

    Points whose `mask` is False do not count and are left alone.
    """
    b, n, _ = points.shape
    keys = torch.rand(b, n, generator=generator, device=points.device)
    fresh = in_unit_ball(b, n, generator=generator)
    if mask is None:
        count = torch.full((b, 1), n, device=points.device)
    else:
        keys, count = keys + 2.0 * ~mask, mask.sum(1, keepdim=True)
    rank = keys.argsort(1).argsort(1)
    replaced = rank < (share * count).round()
    return torch.where(replaced[..., None], fresh.to(points.dtype), points), replaced
