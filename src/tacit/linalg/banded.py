"""Banded systems by block cyclic reduction: the solution of m equations in about log2(m) batched steps.

A matrix of bandwidth w is block tridiagonal with blocks of size w. Every other block row is eliminated at once, which
leaves a block tridiagonal system of half the size; time and memory are O(m w^2). The order of elimination is fixed, so
a diagonal block may be singular although the matrix is not: it is then moved by sqrt(eps), and the caller refines.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.shapes import Float, Int, Tensor

__all__ = ["BlockTridiagonal", "CyclicReduction", "reduce_cyclically", "to_blocks"]


@dataclass(frozen=True)
class BlockTridiagonal:
    """Block rows `lower_i x_(i-1) + diagonal_i x_i + upper_i x_(i+1)`, each (b, n, s, s); beyond the ends is zero."""

    lower: Float[Tensor, "b n s s"]
    diagonal: Float[Tensor, "b n s s"]
    upper: Float[Tensor, "b n s s"]


@dataclass(frozen=True)
class _Level:
    """One halving: the eliminated diagonal blocks, factored, and what couples them with the blocks that stay."""

    lu: Float[Tensor, "b e s s"]
    pivots: Int[Tensor, "b e s"]
    to_previous: Float[Tensor, "b e s s"]
    to_next: Float[Tensor, "b e s s"]
    lower: Float[Tensor, "b h s s"]
    upper: Float[Tensor, "b h s s"]
    blocks: int


@dataclass(frozen=True)
class CyclicReduction:
    """A block tridiagonal matrix, factored; `size` is m, before padding to whole blocks."""

    levels: tuple[_Level, ...]
    size: int

    def solve(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        """Return `w` with `K w = v`, up to the errors of elimination in a fixed order."""
        b, m, k = v.shape
        s = self.levels[0].lu.shape[-1]
        n = self.levels[0].blocks
        r = torch.nn.functional.pad(v, (0, 0, 0, n * s - m)).reshape(b, n, s, k)
        eliminated = []
        for level in self.levels:
            r = _padded(r, level.blocks)
            solved = torch.linalg.lu_solve(level.lu, level.pivots, r[:, 0::2])
            eliminated.append(solved)
            r = r[:, 1::2] - level.lower @ solved[:, :-1] - level.upper @ solved[:, 1:]
        x = r
        for level, solved in zip(reversed(self.levels), reversed(eliminated), strict=True):
            around = torch.nn.functional.pad(x, (0, 0, 0, 0, 1, 1))
            even = solved - level.to_previous @ around[:, :-1] - level.to_next @ around[:, 1:]
            full = x.new_empty(b, level.blocks + 1 - level.blocks % 2, s, k)
            full[:, 0::2], full[:, 1::2] = even, x
            x = full[:, : level.blocks]
        return x.reshape(b, n * s, k)[:, :m]


def to_blocks(bands: Float[Tensor, "b m o"]) -> BlockTridiagonal:
    """Arrange bands, `bands[:, i, o] = K[i, i - w + o]` with 2w+1 columns, in blocks, padded by the identity."""
    b, m, width = bands.shape
    w = width // 2
    s = max(w, 1)
    n = -(-m // s)
    rows = torch.nn.functional.pad(bands, (0, 0, 0, n * s - m))
    rows[:, m:, w] = 1.0
    rows = rows.reshape(b, n, s, width)
    # Row p of a block holds columns p - w ... p + w of the three blocks side by side, counted from the middle one.
    wide = rows.new_zeros(b, n, s, 3 * s)
    at = torch.arange(s, device=bands.device)
    columns = at[:, None] - w + s + torch.arange(width, device=bands.device)
    wide[:, :, at[:, None].expand_as(columns), columns] = rows
    return BlockTridiagonal(wide[..., :s], wide[..., s : 2 * s], wide[..., 2 * s :])


def reduce_cyclically(K: BlockTridiagonal, size: int) -> CyclicReduction:
    """Factor `K`; `size` is the number of its rows before padding. Entries are near one in size, or should be."""
    lower, diagonal, upper = K.lower, K.diagonal, K.upper
    levels: list[_Level] = []
    n = diagonal.shape[1]
    while n > 0:
        lower, upper = _padded(lower, n), _padded(upper, n)
        diagonal = _padded(diagonal, n, identity=True)
        # After the last block nothing is eliminated: if that one is singular, so is the matrix.
        lu, pivots = _factor_moved(diagonal[:, 0::2]) if n > 1 else torch.linalg.lu_factor_ex(diagonal)[:2]
        to_previous = torch.linalg.lu_solve(lu, pivots, lower[:, 0::2])
        to_next = torch.linalg.lu_solve(lu, pivots, upper[:, 0::2])
        low, up = lower[:, 1::2], upper[:, 1::2]
        levels.append(_Level(lu, pivots, to_previous, to_next, low, up, n))
        diagonal = diagonal[:, 1::2] - low @ to_next[:, :-1] - up @ to_previous[:, 1:]
        lower, upper = -(low @ to_previous[:, :-1]), -(up @ to_next[:, 1:])
        n = n // 2
    return CyclicReduction(tuple(levels), size)


def _padded(blocks: Float[Tensor, "b n s k"], n: int, identity: bool = False) -> Float[Tensor, "b n2 s k"]:
    """Append a block to an even number of them, so that the first and the last are among those eliminated."""
    if n % 2:
        return blocks
    blocks = torch.nn.functional.pad(blocks, (0, 0, 0, 0, 0, 1))
    if identity:
        blocks[:, -1] = torch.eye(blocks.shape[-1], dtype=blocks.dtype, device=blocks.device)
    return blocks


def _factor_moved(D: Float[Tensor, "b e s s"]) -> tuple[Float[Tensor, "b e s s"], Int[Tensor, "b e s"]]:
    """Factor the blocks; one that is singular to rounding is moved off, by sqrt(eps) of its size or of one."""
    eps = torch.finfo(D.dtype).eps
    lu, pivots, _ = torch.linalg.lu_factor_ex(D)
    size = D.abs().amax((-1, -2)).clamp(min=1.0)
    smallest = lu.diagonal(dim1=-2, dim2=-1).abs().amin(-1)
    singular = ~(smallest > 100 * eps * size)
    if bool(singular.any()):
        eye = torch.eye(D.shape[-1], dtype=D.dtype, device=D.device)
        moved = D + (torch.where(singular, eps**0.5 * size, 0.0))[..., None, None] * eye
        lu, pivots, _ = torch.linalg.lu_factor_ex(moved)
    return lu, pivots
