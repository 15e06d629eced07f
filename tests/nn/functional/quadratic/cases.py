"""Random programs whose solution is regular: no row weakly active, none dependent."""

from __future__ import annotations

import torch

from tacit.shapes import Tensor

SIZES = [(4, 2, 6), (4, 0, 6), (4, 2, 0), (4, 0, 0), (1, 0, 3), (3, 3, 0)]
"""n, p, q: without equalities, without inequalities, without both, and with nothing left to choose."""


def programs(n: int, p: int, q: int, batch: int = 3, seed: int = 0, rank: int | None = None) -> list[Tensor]:
    """Q of the given rank (n by default), and the rest around a feasible point."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    L, A, G, u = (
        normal(batch, n, n if rank is None else rank),
        normal(batch, p, n),
        normal(batch, q, n),
        normal(batch, n),
    )
    slack = torch.rand(batch, q, generator=generator, dtype=torch.float64)
    Q = L @ L.mT / n + (0.1 * torch.eye(n, dtype=torch.float64) if rank is None else 0)
    return [Q, normal(batch, n), A, (A @ u[:, :, None])[:, :, 0], G, (G @ u[:, :, None])[:, :, 0] + slack]


def given(six: list[Tensor]) -> list[Tensor | None]:
    """The same with None for what has no rows."""
    return [t if t.numel() else None for t in six]


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
