"""DDN[vjp] The vector-Jacobian product without B (section 6.1), and the Jacobian row by row.

With `w = K^-1 [v; 0]` the product is `v' Dy = -(w' [B; C])`, and `w' [B; C]` is one reverse sweep through the scalar
`<w, R(x, y, lam)>`: memory is that of one evaluation of the functions, whatever the number of inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.func import grad, vmap

from tacit.problem import Instance
from tacit.problem.letters import stationarity
from tacit.shapes import Float, Tensor

__all__ = ["pull_back", "pull_back_rows"]


def pull_back(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    w: Float[Tensor, "b N"],
    positions: Sequence[int],
) -> tuple[Tensor, ...]:
    """-w' D_X R for the inputs at `positions`, in their own shapes; a shared input's is the sum over the batch.

    Every tensor, y and lam included, stays attached: the result can be differentiated again.
    """
    if not positions:
        return ()

    def paired(*chosen: Tensor) -> Tensor:
        values = list(instance.values)
        for position, value in zip(positions, chosen, strict=True):
            values[position] = value
        return instance.with_values(tuple(values)).map(_pairing(instance), y, lam, w).sum()

    chosen = tuple(instance.values[i] for i in positions)
    return tuple(-g for g in grad(paired, argnums=tuple(range(len(chosen))))(*chosen))


def pull_back_rows(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    W: Float[Tensor, "b N k"],
    positions: Sequence[int],
) -> tuple[Tensor, ...]:
    """-W' D_X R sample by sample, `(b, k, *shape of the input)`, also for shared inputs."""
    if not positions:
        return ()
    single = grad(_pairing(instance), argnums=tuple(3 + i for i in positions))

    def rows(u: Tensor, lam: Tensor, W: Tensor, *xs: Any) -> tuple[Tensor, ...]:
        return vmap(lambda w: single(u, lam, w, *xs), chunk_size=256)(W.mT)

    return tuple(-g for g in instance.map(rows, y, lam, W))


def _pairing(instance: Instance) -> Any:
    def pairing(u: Tensor, lam: Tensor, w: Tensor, *xs: Any) -> Tensor:
        return torch.dot(w, stationarity(instance, u, lam, *xs))

    return pairing
