"""The KKT system of a program with a positive definite Q, in the coordinates that make the objective a plain square.

With `Q = L L'` and `z = L'u + L^-1 q` the program asks for the point nearest to the origin,

    minimise 1/2 |z|^2   subject to   M_A z = d_A,   M_G z <= d_G,      M = [A; G] L^-T,   d = [b; h] + M L^-1 q.

Equalities are taken out by an orthonormal basis Y of their rows; what is left of the inequalities, P, is orthogonal to
it. The active rows N of P give one small positive definite matrix S = N N', and the factors of Q, of the equalities and
of S together solve the KKT system for any right-hand side: for the answer, for its refinement and for its derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["LeastDistanceForm", "Reduced", "factor_active", "product", "to_least_distance", "transposed_product"]

_COMPRESS = 32  # rows from which it pays to gather the active ones


def product(M: Float[Tensor, "c k n"], v: Float[Tensor, "b n"]) -> Float[Tensor, "b k"]:
    """M v, where M may be shared."""
    return v @ M[0].mT if M.shape[0] == 1 else torch.bmm(M, v.unsqueeze(2)).squeeze(2)


def transposed_product(M: Float[Tensor, "c k n"], v: Float[Tensor, "b k"]) -> Float[Tensor, "b n"]:
    """M'v, where M may be shared."""
    return v @ M[0] if M.shape[0] == 1 else torch.bmm(v.unsqueeze(1), M).squeeze(1)


def _lower(L: Float[Tensor, "c n n"], v: Float[Tensor, "d n k"], adjoint: bool = False) -> Float[Tensor, "d n k"]:
    """L^-1 v or L^-T v; a shared L meets all right-hand sides at once."""
    factor = L.mT if adjoint else L
    if L.shape[0] == 1 and v.shape[0] > 1:
        d, n, k = v.shape
        flat = torch.linalg.solve_triangular(factor[0], v.transpose(0, 1).reshape(n, d * k), upper=adjoint)
        return flat.reshape(n, d, k).transpose(0, 1)
    return torch.linalg.solve_triangular(factor, v, upper=adjoint)


@dataclass(frozen=True)
class LeastDistanceForm:
    """A batch in those coordinates; leading dims are 1 where all samples share what a matrix is made of.

    Attributes:
        L, v: `Q = L L'` and `L^-1 q`.
        M: all rows.
        C, Y, B: `M_A = C Y` with orthonormal Y, and `B = M_G Y'`; None without equalities.
        P, d: what is left of the inequalities, `P z <= d`.
        ok: elements for which all of this exists, comfortably.
    """

    L: Float[Tensor, "cQ n n"]
    v: Float[Tensor, "b n"]
    M: Float[Tensor, "cM r n"]
    C: Float[Tensor, "cA p p"] | None
    Y: Float[Tensor, "cA p n"] | None
    B: Float[Tensor, "cM q p"] | None
    P: Float[Tensor, "cM q n"]
    d: Float[Tensor, "b q"]
    ok: Bool[Tensor, " b"]


def to_least_distance(
    Q: Float[Tensor, "cQ n n"],
    q: Float[Tensor, "b n"],
    A: Float[Tensor, "cA p n"],
    b: Float[Tensor, "b p"],
    G: Float[Tensor, "cG q n"],
    h: Float[Tensor, "b q"],
    eps: float,
) -> LeastDistanceForm:
    """Change coordinates; `eps` is the precision of the numbers that came, whatever is computed in."""
    p = A.shape[1]
    L, info = torch.linalg.cholesky_ex(Q)
    least, most = L.diagonal(dim1=1, dim2=2).aminmax(dim=1)
    ok = (info == 0) & (least > eps**0.35 * most)
    v = _lower(L, q.unsqueeze(2)).squeeze(2)
    rows = G
    if p:
        c = max(A.shape[0], G.shape[0])
        rows = torch.cat([A.expand(c, -1, -1), G.expand(c, -1, -1)], 1)
    if rows.shape[0] == 1 and L.shape[0] > 1:
        rows = rows.expand(L.shape[0], -1, -1)
    M = torch.linalg.solve_triangular(L, rows.mT, upper=False).mT if rows.shape[1] else rows
    if not p:
        d = h + product(M, v) if h.shape[1] else h
        ok = ok & d.sum(1).isfinite()
        return LeastDistanceForm(L, v, M, None, None, None, M, d, ok)
    M_A, M_G = M[:, :p], M[:, p:]
    C, info = torch.linalg.cholesky_ex(M_A @ M_A.mT)
    pivots = C.diagonal(dim1=1, dim2=2)
    ok = ok & (info == 0) & (pivots.square() > eps**0.5 * M_A.square().sum(2)).all(1)
    Y = torch.linalg.solve_triangular(C, M_A, upper=False)
    along = _lower(C, (b + product(M_A, v)).unsqueeze(2)).squeeze(2)
    B = M_G @ Y.mT
    d = h + product(M_G, v) - product(B, along)
    ok = ok & d.sum(1).isfinite() & along.sum(1).isfinite()
    return LeastDistanceForm(L, v, M, C, Y, B, M_G - B @ Y, d, ok)


@dataclass(frozen=True)
class Reduced:
    """Factors that solve `[[Q, R'], [R, 0]] [x; nu] = [v; w]` with R the equalities and the active inequalities.

    `index` says which inequalities the rows of N are; None where every one has its place. `valid` marks those that are
    active; the others have a zero row in N and a one on the diagonal of S.
    """

    form: LeastDistanceForm
    N: Float[Tensor, "b k n"]
    B: Float[Tensor, "b k p"] | None
    S: Float[Tensor, "b k k"] | None
    index: Int[Tensor, "b k"] | None
    valid: Bool[Tensor, "b k"]

    def solve(
        self, v: Float[Tensor, "b n j"], w: Float[Tensor, "b r j"]
    ) -> tuple[Float[Tensor, "b n j"], Float[Tensor, "b r j"]]:
        """x and nu, the latter zero for rows that are not active."""
        form = self.form
        p = 0 if form.C is None else form.C.shape[1]
        z = _lower(form.L, v)
        w_A, w_G = w[:, :p], w[:, p:]
        q = w_G.shape[1]
        if self.index is not None:
            w_G = w_G.gather(1, self.index.unsqueeze(2).expand(-1, -1, w.shape[2]))
        if form.C is not None and form.Y is not None and self.B is not None:
            want = _lower(form.C, w_A)
            alpha = form.Y @ z - want
            z = z - form.Y.mT @ alpha
            w_G = w_G - self.B @ want
        if self.S is not None:
            goal = torch.where(self.valid.unsqueeze(2), self.N @ z - w_G, 0.0)
            # N is orthogonal to Y: the part of z along the equalities does not matter to it.
            beta = torch.cholesky_solve(goal, self.S)
            z = z - self.N.mT @ beta
        else:
            beta = w_G
        x = _lower(form.L, z, adjoint=True)
        nu_G = beta
        if self.index is not None:
            place = self.index.unsqueeze(2).expand(-1, -1, w.shape[2])
            nu_G = w.new_zeros(w.shape[0], q, w.shape[2]).scatter(1, place, beta)
        if form.C is None or self.B is None:
            return x, nu_G
        left = alpha - self.B.mT @ beta if self.S is not None else alpha
        return x, torch.cat([_lower(form.C, left, adjoint=True), nu_G], 1)


def factor_active(form: LeastDistanceForm, active: Bool[Tensor, "b q"], eps: float) -> tuple[Reduced, Tensor]:
    """Factor for these active inequalities; also, which elements' active rows are comfortably independent."""
    b, q = active.shape
    n = form.L.shape[1]
    rows, B = form.P, form.B
    index, valid = None, active
    most = q
    if q > _COMPRESS:
        count = active.sum(1)
        most = int(count.max()) if b else 0
        index = torch.argsort(active.to(torch.uint8), dim=1, descending=True, stable=True)[:, :most]
        valid = torch.arange(most, device=active.device) < count.unsqueeze(1)
        rows = rows.expand(b, -1, -1).gather(1, index.unsqueeze(2).expand(-1, -1, n))
        if B is not None:
            B = B.expand(b, -1, -1).gather(1, index.unsqueeze(2).expand(-1, -1, B.shape[2]))
    N = rows * valid.unsqueeze(2)
    if B is not None:
        B = B * valid.unsqueeze(2)
    if most == 0:
        return Reduced(form, N, B, None, index, valid), torch.ones_like(form.ok)
    S = N @ N.mT
    diagonal = S.diagonal(dim1=1, dim2=2)
    size = diagonal if B is None else diagonal + B.square().sum(2)  # the rows as they were before the projection
    size = size.clone()
    diagonal += ~valid
    S, info = torch.linalg.cholesky_ex(S)
    independent = (info == 0) & (S.diagonal(dim1=1, dim2=2).square() > eps**0.5 * size).all(1)
    return Reduced(form, N, B, S, index, valid), independent
