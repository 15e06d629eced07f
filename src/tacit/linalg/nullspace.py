"""The minimum-norm answer of `[[H, A'], [A, 0]] [dy; dnu] = [rhs_y; rhs_c]` where that matrix is singular.

With `Z` an orthonormal basis of the null space of `A`,

    dy  = A^+ rhs_c + Z (Z'HZ)^+ Z' (rhs_y - H A^+ rhs_c),        dnu = A'^+ (rhs_y - H dy),

which is the `dy` of least Euclidean norm, in the original coordinates, among the (least-squares) solutions. Neither the
pseudo-inverse of the whole matrix nor that of a scaled one has this property. The map is linear and symmetric,
`[dy; dnu] = G [rhs_y; rhs_c]`, so a vector-Jacobian product applies the same `G`.

This is the slow path, two decompositions an element; it serves the few elements that `dense` finds singular.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["MinimumNorm", "NullspaceInfo", "minimum_norm", "minimum_norm_map", "reduced_inertia", "solution_family"]


@dataclass(frozen=True)
class NullspaceInfo:
    """What was found of each element; integers and floats of shape (b,).

    `rank_rows`: rank of A. `rank_reduced`: rank of Z'HZ. `nullity`: directions in y that nothing determines.
    `negative`: eigenvalues of Z'HZ below the noise. `least`: its smallest eigenvalue relative to |H|, infinite when the
    rows leave no direction free. `inconsistent_rows`: |A dy - rhs_c|, the rows of A taken to unit length, relative to
    rhs_c; `inconsistent_reduced`: |Z'(rhs_y - H dy)| relative to its terms; both zero when there was no right-hand
    side. `ok`: the element is finite.
    """

    rank_rows: Int[Tensor, " b"]
    rank_reduced: Int[Tensor, " b"]
    nullity: Int[Tensor, " b"]
    negative: Int[Tensor, " b"]
    least: Float[Tensor, " b"]
    inconsistent_rows: Float[Tensor, " b"]
    inconsistent_reduced: Float[Tensor, " b"]
    ok: Bool[Tensor, " b"]


@dataclass(frozen=True)
class MinimumNorm:
    """The map `G` (b, m+r, m+r) of minimum norm, symmetric, with its blocks' sizes; zero where an element is not ok.

    `H`, `A` are the matrices it was made from, `null` the projector Z Z' and `row_length` the norm of each row.
    """

    G: Float[Tensor, "b s s"]
    H: Float[Tensor, "b m m"]
    A: Float[Tensor, "b r m"]
    null: Float[Tensor, "b m m"]
    row_length: Float[Tensor, "b r"]
    info: NullspaceInfo

    def solve(
        self, rhs_y: Float[Tensor, "b m k"], rhs_c: Float[Tensor, "b r k"]
    ) -> tuple[Float[Tensor, "b m k"], Float[Tensor, "b r k"]]:
        """Return `dy` (b, m, k) and `dnu` (b, r, k). `G` is symmetric: transposed products are this very call."""
        m = self.H.shape[-1]
        w = self.G @ torch.cat([rhs_y, rhs_c], -2)
        w = torch.where(self.info.ok[:, None, None], w, 0.0)
        return w[:, :m], w[:, m:]

    def inconsistency(
        self, rhs_y: Float[Tensor, "b m k"], rhs_c: Float[Tensor, "b r k"], dy: Float[Tensor, "b m k"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
        """Return how far `dy` is from solving A dy = rhs_c and Z'H dy = Z'rhs_y, each relative to its own terms."""
        unit = 1.0 / self.row_length[:, :, None]
        rows = _largest(unit * (self.A @ dy - rhs_c))
        pull = self.H @ dy
        reduced = _largest(self.null @ (rhs_y - pull))
        terms = torch.maximum(_largest(rhs_y), _largest(pull))
        return _ratio(rows, _largest(unit * rhs_c)), _ratio(reduced, terms)


def minimum_norm(
    H: Float[Tensor, "b m m"],
    A: Float[Tensor, "b r m"],
    rhs_y: Float[Tensor, "b m k"],
    rhs_c: Float[Tensor, "b r k"],
    rank_tol: float | None = None,
) -> tuple[Float[Tensor, "b m k"], Float[Tensor, "b r k"], NullspaceInfo]:
    """Return `dy` (b, m, k) of least norm, `dnu` (b, r, k) and what is known of each element.

    `H` is symmetric; rows of `A` that do not take part are zero. Singular values of the row-normalised `A` below
    `rank_tol` times the largest, and eigenvalues of `Z'HZ` below `rank_tol |H|`, count as zero; the default is
    `eps^(2/3)` of the dtype. Inconsistent equations are solved in the sense of least squares, and reported.

    >>> H, A = torch.zeros(1, 2, 2), torch.tensor([[[1.0, 1.0]]])
    >>> dy, dnu, info = minimum_norm(H, A, torch.zeros(1, 2, 1), torch.ones(1, 1, 1))
    >>> dy.flatten(), info.nullity
    (tensor([0.5000, 0.5000]), tensor([1]))
    """
    map_ = minimum_norm_map(H, A, rank_tol)
    dy, dnu = map_.solve(rhs_y, rhs_c)
    rows, reduced = map_.inconsistency(rhs_y, rhs_c, dy)
    found = map_.info
    info = NullspaceInfo(
        found.rank_rows, found.rank_reduced, found.nullity, found.negative, found.least, rows, reduced, found.ok
    )
    return dy, dnu, info


def minimum_norm_map(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b r m"], rank_tol: float | None = None
) -> MinimumNorm:
    """Return the linear map of `minimum_norm` itself, to be applied to any right-hand side.

    >>> map_ = minimum_norm_map(torch.diag_embed(torch.tensor([[2.0, 0.0]])), torch.zeros(1, 0, 2))
    >>> map_.G
    tensor([[[0.5000, 0.0000],
             [0.0000, 0.0000]]])
    """
    tol = _default_tolerance(H) if rank_tol is None else rank_tol
    H, A, ok = _finite(H, A)
    rows = _row_space(A, tol)
    reduced = _reduced_spectrum(H, rows.basis, rows.rank, tol)
    inverse = torch.where(reduced.kept, 1.0 / torch.where(reduced.kept, reduced.values, 1.0), 0.0)
    # T = Z (Z'HZ)^+ Z', in the original coordinates.
    T = (reduced.vectors * inverse[:, None, :]) @ reduced.vectors.mT
    P = rows.pseudo_inverse
    G_yc = P - T @ (H @ P)
    G_cc = -(P.mT @ H @ G_yc)
    G = torch.cat([torch.cat([T, G_yc], -1), torch.cat([G_yc.mT, 0.5 * (G_cc + G_cc.mT)], -1)], -2)
    null = (reduced.vectors * reduced.free[:, None, :]) @ reduced.vectors.mT
    rank_reduced = reduced.kept.sum(-1)
    nothing = H.new_zeros(H.shape[0])
    info = NullspaceInfo(
        rows.rank,
        rank_reduced,
        H.shape[-1] - rows.rank - rank_reduced,
        reduced.negative,
        reduced.least,
        nothing,
        nothing,
        ok,
    )
    return MinimumNorm(G * ok[:, None, None], H, A, null, rows.length, info)


def reduced_inertia(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b r m"], rank_tol: float | None = None
) -> tuple[Float[Tensor, " b"], Int[Tensor, " b"]]:
    """Return the least eigenvalue of Z'HZ relative to |H| (b,), and how many are negative beyond noise (b,).

    Z spans the null space of A. The first is infinite where the rows leave no direction free, and both are zero for an
    element that is not finite.

    >>> H = torch.diag_embed(torch.tensor([[4.0, -4.0]]))
    >>> least, negative = reduced_inertia(H, torch.tensor([[[0.0, 1.0]]]))
    >>> least.item(), negative.item()
    (1.0, 0)
    """
    tol = _default_tolerance(H) if rank_tol is None else rank_tol
    H, A, ok = _finite(H, A)
    rows = _row_space(A, tol)
    reduced = _reduced_spectrum(H, rows.basis, rows.rank, tol)
    return torch.where(ok, reduced.least, 0.0), torch.where(ok, reduced.negative, 0)


def solution_family(
    H: Float[Tensor, "b m m"],
    B: Float[Tensor, "b m n"],
    Z: Float[Tensor, "b m n"],
    rank_tol: float | None = None,
) -> Float[Tensor, "b m n"]:
    """Return the member `-H^+ B + (I - H^+ H) Z` of the solutions of `H X = -B` that `Z` (b, m, n) picks.

    `H` is symmetric. `Z = 0` gives the one of least norm. Zero for an element that is not finite.

    >>> H = torch.diag_embed(torch.tensor([[2.0, 0.0]]))
    >>> solution_family(H, torch.tensor([[[4.0], [0.0]]]), torch.tensor([[[7.0], [5.0]]])).flatten()
    tensor([-2.,  5.])
    """
    tol = _default_tolerance(H) if rank_tol is None else rank_tol
    empty = H.new_zeros(H.shape[0], 0, H.shape[-1])
    H, _, ok = _finite(H, empty)
    rows = _row_space(empty, tol)
    spectrum = _reduced_spectrum(H, rows.basis, rows.rank, tol)
    V = spectrum.vectors
    inverse = torch.where(spectrum.kept, 1.0 / torch.where(spectrum.kept, spectrum.values, 1.0), 0.0)
    least = -(V @ (inverse[:, :, None] * (V.mT @ B)))
    free = V @ ((~spectrum.kept)[:, :, None] * (V.mT @ Z))
    return torch.where(ok[:, None, None], least + free, 0.0)


@dataclass(frozen=True)
class _RowSpace:
    """Rank of A, `basis` (b, m, m) whose first `rank` columns span its rows, its pseudo-inverse, its rows' lengths."""

    rank: Int[Tensor, " b"]
    basis: Float[Tensor, "b m m"]
    pseudo_inverse: Float[Tensor, "b m r"]
    length: Float[Tensor, "b r"]


@dataclass(frozen=True)
class _Spectrum:
    """Eigenpairs of Z'HZ with vectors in the coordinates of y; `free` marks the m - rank(A) pairs that exist."""

    values: Float[Tensor, "b m"]
    vectors: Float[Tensor, "b m m"]
    free: Bool[Tensor, "b m"]
    kept: Bool[Tensor, "b m"]
    least: Float[Tensor, " b"]
    negative: Int[Tensor, " b"]


def _default_tolerance(H: Tensor) -> float:
    return float(torch.finfo(H.dtype).eps ** (2 / 3))


def _finite(
    H: Float[Tensor, "b m m"], A: Float[Tensor, "b r m"]
) -> tuple[Float[Tensor, "b m m"], Float[Tensor, "b r m"], Bool[Tensor, " b"]]:
    """Replace the elements that no decomposition accepts by zeros, and make H exactly symmetric."""
    H, A = H.detach(), A.detach()
    ok = H.isfinite().flatten(1).all(-1) & A.isfinite().flatten(1).all(-1)
    keep = ok[:, None, None]
    return torch.where(keep, 0.5 * (H + H.mT), 0.0), torch.where(keep, A, 0.0), ok


def _row_space(A: Float[Tensor, "b r m"], tol: float) -> _RowSpace:
    """Decide the rank of A by the singular values of its rows taken to unit length, and invert on it."""
    b, r, m = A.shape
    eye = torch.eye(m, dtype=A.dtype, device=A.device).expand(b, m, m)
    if r == 0 or m == 0 or b == 0:
        rank = torch.zeros(b, dtype=torch.int64, device=A.device)
        return _RowSpace(rank, eye, A.mT, A.new_ones(b, r))
    length = torch.linalg.vector_norm(A, dim=-1)
    present = length > 0
    length = torch.where(present, length, 1.0)
    U, S, Vh = torch.linalg.svd(A / length[:, :, None], full_matrices=True)
    k = min(r, m)
    kept = tol * S[:, :1] < S
    rank = kept.sum(-1)
    # Rows that do not take part get a multiplier of exactly zero.
    U, V = U[:, :, :k] * (kept[:, None, :] & present[:, :, None]), Vh.mT
    inverse = torch.where(kept, 1.0 / torch.where(kept, S, 1.0), 0.0)
    # With independent rows their lengths are immaterial: A^+ = (D A)^+ D, accurate whatever the lengths.
    left = U.mT / length[:, None, :]
    dependent = rank < present.sum(-1)
    if bool(dependent.any()):
        left = torch.where(dependent[:, None, None], _left_inverse(U * length[:, :, None], kept), left)
    return _RowSpace(rank, V, (V[:, :, :k] * inverse[:, None, :]) @ left, length)


def _left_inverse(M: Float[Tensor, "b r k"], kept: Bool[Tensor, "b k"]) -> Float[Tensor, "b k r"]:
    """Return `M^+` where the columns not `kept` are zero and the others independent.

    Triangularisation with the large rows first keeps small rows accurate, up to the ratio of their sizes times eps.
    """
    order = torch.linalg.vector_norm(M, dim=-1).argsort(dim=-1, descending=True)
    Q, R = torch.linalg.qr(M.gather(1, order[:, :, None].expand_as(M)))
    R = R + torch.diag_embed((~kept).to(M.dtype))
    sorted_inverse = torch.linalg.solve_triangular(R, Q.mT, upper=True)
    return torch.empty_like(sorted_inverse).scatter_(2, order[:, None, :].expand_as(sorted_inverse), sorted_inverse)


def _reduced_spectrum(
    H: Float[Tensor, "b m m"], basis: Float[Tensor, "b m m"], rank: Int[Tensor, " b"], tol: float
) -> _Spectrum:
    """Decompose Z'HZ for a batch in which Z has a different number of columns for each element.

    The directions that the rows determine are given an eigenvalue above all others, so that they come last.
    """
    b, m = H.shape[:2]
    size = H.abs().sum(-1).amax(-1) if m else H.new_zeros(b)
    size = torch.where(size > 0, size, 1.0)
    index = torch.arange(m, device=H.device)
    is_free = (index >= rank[:, None]).to(H.dtype)
    Z = basis * is_free[:, None, :]
    R = Z.mT @ (H / size[:, None, None]) @ Z
    values, W = torch.linalg.eigh(0.5 * (R + R.mT) + 3.0 * torch.diag_embed(1.0 - is_free))
    free = index < m - rank[:, None]
    kept = free & (values.abs() > tol)
    least = torch.where(free, values, float("inf")).amin(-1) if m else H.new_full((b,), float("inf"))
    negative = (kept & (values < 0)).sum(-1)
    return _Spectrum(values * size[:, None], (Z @ W) * free[:, None, :], free, kept, least, negative)


def _largest(v: Float[Tensor, "b n k"]) -> Float[Tensor, " b"]:
    return v.abs().flatten(1).amax(-1) if v[:1].numel() else v.new_zeros(v.shape[0])


def _ratio(part: Float[Tensor, " b"], whole: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
    return torch.where(whole > 0, part / torch.where(whole > 0, whole, 1.0), part)
