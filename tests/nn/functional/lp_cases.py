"""Rows that are hard to project, and answers found in another way."""

from __future__ import annotations

import math

import torch

CURVED = (1.1, 1.5, 3.0, 7.0, 50.0)
EXACT = (1.0, 2.0, math.inf)
EVERY = (*EXACT, *CURVED)


def hard_rows(n: int = 5, count: int = 1000, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Normal numbers; among them outliers, ties, equal numbers, zeros and short rows, a seventh of each."""
    x = torch.randn(count, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    x[0::7, 0] *= 100
    x[1::7] = (2 * x[1::7]).round() / 2
    x[2::7] = x[2::7, :1]
    x[3::7, 0] = 0
    x[4::7] *= 0.2
    x[5::70] = 0
    return x.to(dtype)


def generic_rows(n: int = 5, count: int = 1000) -> torch.Tensor:
    """Normal numbers with outliers and short rows: away from every kink, but for chance."""
    x = torch.randn(count, n, generator=torch.Generator().manual_seed(100 + n), dtype=torch.float64)
    x[0::7, 0] *= 100
    x[4::7] *= 0.2
    return x


def norm(u: torch.Tensor, p: float) -> torch.Tensor:
    """||u||_p of each row, in units of its largest number, so that no power overflows."""
    top = u.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(u.dtype).tiny)
    return torch.linalg.vector_norm(u / top, ord=p, dim=-1) * top[..., 0]


def simplex_by_bisection(a: torch.Tensor, radius: float) -> torch.Tensor:
    """max(a - theta, 0) with theta found by halving, which knows no sort and no active set."""
    low, high = a.amax(-1, keepdim=True) - radius, a.amax(-1, keepdim=True)
    for _ in range(120):
        theta = 0.5 * (low + high)
        over = (a - theta).clamp_min(0).sum(-1, keepdim=True) > radius
        low, high = torch.where(over, theta, low), torch.where(over, high, theta)
    return (a - high).clamp_min(0)


def curved_by_bisection(a: torch.Tensor, p: float) -> torch.Tensor:
    """The projection of a >= 0 from outside the unit ball: both the multiplier and u by halving, no derivative."""

    def coordinates(mu: torch.Tensor) -> torch.Tensor:
        low, high = torch.zeros_like(a), a.clone()
        for _ in range(80):
            u = 0.5 * (low + high)
            over = u + mu * u.pow(p - 1) > a
            low, high = torch.where(over, low, u), torch.where(over, u, high)
        return 0.5 * (low + high)

    low, high = a.new_zeros(len(a), 1), a.sum(-1, keepdim=True) * a.shape[-1]
    for _ in range(80):
        mu = 0.5 * (low + high)
        long = coordinates(mu).pow(p).sum(-1, keepdim=True) > 1
        low, high = torch.where(long, mu, low), torch.where(long, high, mu)
    return coordinates(0.5 * (low + high))


def central_differences(f, x: torch.Tensor, step: float = 1e-6) -> torch.Tensor:
    """The Jacobian (b, m, n) of a function of rows that treats each alone."""
    columns = []
    for i in range(x.shape[-1]):
        e = torch.zeros_like(x)
        e[:, i] = step
        columns.append((f(x + e) - f(x - e)) / (2 * step))
    return torch.stack(columns, -1)
