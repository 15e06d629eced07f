"""Matrices known by their structure: diagonal, block diagonal, banded.

A structure says which products recover such a matrix (one, `size`, `2 bandwidth + 1` of them, whatever m), and the
recovered matrix is multiplied and solved with in O(m). The products are all that is asked of the original.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch

from tacit.linalg.banded import reduce_cyclically, to_blocks
from tacit.linalg.condition import inverse_norm, spread_vectors
from tacit.linalg.dense import factor
from tacit.options import check_count
from tacit.shapes import Bool, Float, Tensor

__all__ = [
    "Banded",
    "BandedMatrix",
    "BlockDiagonal",
    "BlockDiagonalMatrix",
    "Diagonal",
    "DiagonalMatrix",
    "Structure",
    "StructuredFactor",
    "StructuredMatrix",
    "detect_structure",
    "misfit",
]

Operator = Callable[[Tensor], Tensor]


class StructuredMatrix(ABC):
    """A batch of m by m matrices that knows how to multiply and how to be factored, each in O(m)."""

    @property
    @abstractmethod
    def entries(self) -> Float[Tensor, "b ..."]:
        """The stored entries, batch first."""

    @abstractmethod
    def matvec(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        """Return `K v`."""

    @abstractmethod
    def row_sums(self) -> Float[Tensor, "b m"]:
        """Return the sum of the magnitudes in each row."""

    @abstractmethod
    def scaled(self, scale: Float[Tensor, "b m"]) -> StructuredMatrix:
        """Return `S K S` for the diagonal matrix `S` of `scale`."""

    @abstractmethod
    def _replaced(self, ok: Bool[Tensor, " b"]) -> StructuredMatrix:
        """Return the matrix with the identity in place of the elements that are not `ok`."""

    @abstractmethod
    def _direct(self) -> Operator:
        """Return a function that solves, to the accuracy of one elimination."""

    def factor(self) -> StructuredFactor:
        """Equilibrate and factor every element; the estimate of its condition takes the matrix to be symmetric."""
        ok = self.entries.isfinite().flatten(1).all(-1)
        clean = self if bool(ok.all()) else self._replaced(ok)
        scale = clean._scale()
        K = clean.scaled(scale)
        sums = K.row_sums()
        unknown = StructuredFactor(clean, K, scale, K._direct(), torch.ones_like(scale[:, :1].sum(-1)), ok)
        if scale.shape[-1] == 0:
            return unknown
        rcond = 1.0 / (sums.amax(-1) * inverse_norm(unknown._solve_scaled, unknown._solve_scaled, sums))
        # A singular matrix may have been eliminated as one nearby: then what it was to solve is not solved.
        probe = spread_vectors(sums.shape[-1], sums)[:, :1].expand(*sums.shape, 1)
        solved = _largest(probe - K.matvec(unknown._solve_scaled(probe))) < torch.finfo(sums.dtype).eps ** 0.2
        rcond = torch.where(ok & solved & rcond.isfinite(), rcond, 0.0).clamp(max=1.0)
        return StructuredFactor(clean, K, scale, unknown.direct, rcond, ok & (rcond > 0))

    def _scale(self) -> Float[Tensor, "b m"]:
        """Equilibrate as `equilibrate` does, by row sums; rows of rounding noise (50 eps of the largest) stay small."""
        sums = self.row_sums()
        scale = torch.ones_like(sums)
        if sums.shape[-1] == 0:
            return scale
        counts = sums > 50 * torch.finfo(sums.dtype).eps * sums.amax(-1, keepdim=True)
        for step in range(4):
            sums = sums if step == 0 else self.scaled(scale).row_sums()
            scale = torch.where(counts & (sums > 0), scale * sums.rsqrt(), scale)
        return torch.exp2(scale.log2().round())

    def solve(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        """Factor and solve once; keep `factor()` to solve again."""
        return self.factor().solve(v)


@dataclass(frozen=True)
class StructuredFactor:
    """A structured matrix, its equilibrated form `scaled`, and the function `direct` that solves with the latter.

    `rcond` (b,) is that of `scaled`. Not `ok` (b,) means singular or not finite; such an element is solved by zero.
    """

    matrix: StructuredMatrix
    scaled: StructuredMatrix
    scale: Float[Tensor, "b m"]
    direct: Operator
    rcond: Float[Tensor, " b"]
    ok: Bool[Tensor, " b"]

    def solve(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        """Return `w` with `K w = v`, refined as long as that pays."""
        scale = self.scale[:, :, None]
        return scale * self._solve_scaled(scale * v)

    def _solve_scaled(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        keep = self.ok[:, None, None]
        w = torch.where(keep, self.direct(v), 0.0)
        r = torch.where(keep, v - self.scaled.matvec(w), 0.0)
        bound = torch.finfo(v.dtype).eps * _terms(self.scaled, v, w)
        for step in range(4):
            # One step is always worth having after an elimination without free choice of pivots.
            open_ = _largest(r) > (bound if step else 0.0)
            if not bool(open_.any()):
                break
            w_new = w + self.direct(r)
            r_new = torch.where(keep, v - self.scaled.matvec(w_new), 0.0)
            better = (_largest(r_new) < _largest(r))[:, None, None]
            w, r = torch.where(better, w_new, w), torch.where(better, r_new, r)
        return w

    def residual(self, v: Float[Tensor, "b m k"], w: Float[Tensor, "b m k"]) -> Float[Tensor, " b"]:
        """Return |v - K w| relative to |K| |w| + |v|, largest norms: the backward error of `w` (b,)."""
        terms = _terms(self.matrix, v, w)
        size = _largest(v - self.matrix.matvec(w))
        size = torch.where(terms > 0, size / torch.where(terms > 0, terms, 1.0), 0.0)
        return torch.where(self.ok & size.isfinite(), size, float("inf"))


@dataclass(frozen=True)
class DiagonalMatrix(StructuredMatrix):
    """The diagonal, `values` (b, m)."""

    values: Float[Tensor, "b m"]

    @property
    def entries(self) -> Float[Tensor, "b m"]:
        return self.values

    def matvec(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        return self.values[:, :, None] * v

    def row_sums(self) -> Float[Tensor, "b m"]:
        return self.values.abs()

    def scaled(self, scale: Float[Tensor, "b m"]) -> DiagonalMatrix:
        return DiagonalMatrix(scale * self.values * scale)

    def _replaced(self, ok: Bool[Tensor, " b"]) -> DiagonalMatrix:
        return DiagonalMatrix(torch.where(ok[:, None], self.values, 1.0))

    def _direct(self) -> Operator:
        inverse = torch.where(self.values == 0, float("inf"), 1.0 / self.values)[:, :, None]
        return lambda v: inverse * v


@dataclass(frozen=True)
class BlockDiagonalMatrix(StructuredMatrix):
    """Square blocks (b, n, s, s) along the diagonal of a matrix of `size` rows; a last block may reach beyond it."""

    blocks: Float[Tensor, "b n s s"]
    size: int

    @property
    def entries(self) -> Float[Tensor, "b n s s"]:
        return self.blocks

    def matvec(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        return self._joined(self.blocks @ self._split(v))

    def row_sums(self) -> Float[Tensor, "b m"]:
        return self.blocks.abs().sum(-1).flatten(1)[:, : self.size]

    def scaled(self, scale: Float[Tensor, "b m"]) -> BlockDiagonalMatrix:
        parts = self._split(scale[:, :, None])
        return BlockDiagonalMatrix(parts * self.blocks * parts.mT + self._beyond(), self.size)

    def _beyond(self) -> Float[Tensor, "n s s"]:
        """The rows of the last block beyond the matrix: the identity's, which a scale of zero would take away."""
        n, s = self.blocks.shape[1:3]
        rows = torch.arange(n * s, device=self.blocks.device).reshape(n, s)
        return torch.diag_embed((rows >= self.size).to(self.blocks.dtype))

    def _split(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b n s k"]:
        b, n, s, _ = self.blocks.shape
        return torch.nn.functional.pad(v, (0, 0, 0, n * s - self.size)).reshape(b, n, s, v.shape[-1])

    def _joined(self, v: Float[Tensor, "b n s k"]) -> Float[Tensor, "b m k"]:
        return v.flatten(1, 2)[:, : self.size]

    def _replaced(self, ok: Bool[Tensor, " b"]) -> BlockDiagonalMatrix:
        eye = torch.eye(self.blocks.shape[-1], dtype=self.blocks.dtype, device=self.blocks.device)
        return BlockDiagonalMatrix(torch.where(ok[:, None, None, None], self.blocks, eye), self.size)

    def _direct(self) -> Operator:
        flat = factor(self.blocks.flatten(0, 1))
        # A singular block would be solved by zero: say it loudly enough for the estimate to hear.
        loud = torch.where(flat.ok, 1.0, float("inf")).to(flat.rcond.dtype)[:, None, None]

        def solve(v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
            parts = self._split(v)
            return self._joined((loud * flat.solve(parts.flatten(0, 1))).reshape(parts.shape))

        return solve


@dataclass(frozen=True)
class BandedMatrix(StructuredMatrix):
    """`bands[:, i, o] = K[i, i - w + o]` (b, m, 2w+1), zero where that column does not exist."""

    bands: Float[Tensor, "b m o"]

    @property
    def entries(self) -> Float[Tensor, "b m o"]:
        return self.bands

    def matvec(self, v: Float[Tensor, "b m k"]) -> Float[Tensor, "b m k"]:
        m, width = self.bands.shape[1:]
        padded = torch.nn.functional.pad(v, (0, 0, width // 2, width // 2))
        out = torch.zeros_like(v)
        for o in range(width):
            out = out + self.bands[:, :, o, None] * padded[:, o : o + m]
        return out

    def row_sums(self) -> Float[Tensor, "b m"]:
        return self.bands.abs().sum(-1)

    def scaled(self, scale: Float[Tensor, "b m"]) -> BandedMatrix:
        width = self.bands.shape[-1]
        if self.bands.shape[1] == 0:
            return self
        across = torch.nn.functional.pad(scale, (width // 2, width // 2)).unfold(-1, width, 1)
        return BandedMatrix(scale[:, :, None] * self.bands * across)

    def _replaced(self, ok: Bool[Tensor, " b"]) -> BandedMatrix:
        eye = torch.zeros_like(self.bands[0, 0])
        eye[eye.shape[0] // 2] = 1.0
        return BandedMatrix(torch.where(ok[:, None, None], self.bands, eye))

    def _direct(self) -> Operator:
        if self.bands.shape[1] == 0:
            return lambda v: v
        return reduce_cyclically(to_blocks(self.bands), self.bands.shape[1]).solve


class Structure(ABC):
    """What is known of a matrix before it is seen: which products recover it."""

    @abstractmethod
    def colors(self) -> int:
        """Return the number of products that recover the matrix."""

    @abstractmethod
    def _assemble(self, products: Float[Tensor, "b c m"]) -> StructuredMatrix:
        """Read the matrix from its products with the probes."""

    def probes(self, m: int, dtype: torch.dtype, device: torch.device | str) -> Float[Tensor, "c m"]:
        """Return the probing vectors: the i-th is one at every `colors()`-th coordinate from the i-th on."""
        colors = self.colors()
        index = torch.arange(m, device=device)
        return (index % colors == torch.arange(colors, device=device)[:, None]).to(dtype)

    def recover(
        self, matvec: Operator, m: int, dtype: torch.dtype, device: torch.device | str, batch: int
    ) -> StructuredMatrix:
        """Recover the matrix from `colors()` products; `matvec` maps (b, m) to (b, m).

        >>> d = torch.tensor([[1.0, 2.0, 3.0]])
        >>> Diagonal().recover(lambda v: d * v, 3, d.dtype, d.device, 1).values
        tensor([[1., 2., 3.]])
        """
        probes = self.probes(m, dtype, device)
        return self._assemble(torch.stack([matvec(p.expand(batch, m)) for p in probes], 1))


@dataclass(frozen=True)
class Diagonal(Structure):
    """A diagonal matrix; one product recovers it."""

    def colors(self) -> int:
        return 1

    def _assemble(self, products: Float[Tensor, "b 1 m"]) -> DiagonalMatrix:
        return DiagonalMatrix(products[:, 0])


@dataclass(frozen=True)
class BlockDiagonal(Structure):
    """Square blocks of `size` rows along the diagonal (the last may be cut off); `size` products recover it."""

    size: int

    def __post_init__(self) -> None:
        check_count("BlockDiagonal", "size", self.size)

    def colors(self) -> int:
        return self.size

    def _assemble(self, products: Float[Tensor, "b s m"]) -> BlockDiagonalMatrix:
        b, s, m = products.shape
        n = -(-m // s)
        rows = torch.nn.functional.pad(products.mT, (0, 0, 0, n * s - m))
        cut = BlockDiagonalMatrix(rows.reshape(b, n, s, s), m)
        return BlockDiagonalMatrix(cut.blocks + cut._beyond(), m)


@dataclass(frozen=True)
class Banded(Structure):
    """Entries at most `bandwidth` off the diagonal on either side; `2 bandwidth + 1` products recover it."""

    bandwidth: int

    def __post_init__(self) -> None:
        check_count("Banded", "bandwidth", self.bandwidth, zero=True)  # a tridiagonal matrix has 1

    def colors(self) -> int:
        return 2 * self.bandwidth + 1

    def _assemble(self, products: Float[Tensor, "b c m"]) -> BandedMatrix:
        colors, m = products.shape[1:]
        row = torch.arange(m, device=products.device)[:, None]
        column = row - self.bandwidth + torch.arange(colors, device=products.device)
        exists = (column >= 0) & (column < m)
        return BandedMatrix(torch.where(exists, products[:, column % colors, row], 0.0))


def detect_structure(
    matvec: Operator, m: int, dtype: torch.dtype, device: torch.device | str, batch: int, max_bandwidth: int = 4
) -> Structure | None:
    """Return the narrowest structure that a few products are consistent with: diagonal, banded, or None.

    Every candidate is recovered and compared with the operator on one vector without pattern, in every element that is
    finite there. At most about 4 `max_bandwidth` products; a dense matrix that agrees by chance is practically
    impossible.

    >>> d = torch.tensor([[1.0, 2.0, 3.0]])
    >>> detect_structure(lambda v: d * v, 3, d.dtype, d.device, 1)
    Diagonal()
    """
    if batch == 0 or m == 0:
        return None
    z = spread_vectors(m, torch.empty(0, dtype=dtype, device=device))[:, 1].expand(batch, m)
    truth = matvec(z)
    if not bool(truth.isfinite().all(-1).any()):
        return None
    candidates: list[Structure] = [Diagonal()]
    width = 1
    while width <= max_bandwidth and 2 * width + 1 < m:
        candidates.append(Banded(width))
        width *= 2
    for structure in candidates:
        error = misfit(structure.recover(matvec, m, dtype, device, batch), lambda _: truth)
        if bool((error <= 100 * torch.finfo(dtype).eps).all()):
            return structure
    return None


def misfit(K: StructuredMatrix, matvec: Operator) -> Float[Tensor, " b"]:
    """Return how far the operator is from `K` on one vector without pattern, relative to `K`; 0 where it is not finite."""
    size = K.row_sums()
    z = spread_vectors(size.shape[1], size[:0, :0])[:, 1].expand_as(size)
    truth = matvec(z)
    error = (K.matvec(z[:, :, None])[:, :, 0] - truth).abs().amax(-1)
    size = size.amax(-1)
    return torch.where(truth.isfinite().all(-1), torch.where(error > 0, error / size, 0.0), 0.0)


def _largest(v: Float[Tensor, "b m k"]) -> Float[Tensor, " b"]:
    return v.abs().flatten(1).amax(-1) if v[:1].numel() else v.new_zeros(v.shape[0])


def _terms(K: StructuredMatrix, v: Float[Tensor, "b m k"], w: Float[Tensor, "b m k"]) -> Float[Tensor, " b"]:
    return _largest(K.row_sums()[:, :, None]) * _largest(w) + _largest(v)
