"""The KKT engine: one linear system behind every proposition of the paper's section 4. DDN[engine]

At a solution y with multipliers lam, the active rows `[h; g]` and the stationarity of the Lagrangian form a system
`R(x, y, lam) = [L_Y; rows] = 0`. With the unknowns ordered `(y, -lam)` its derivative is symmetric,

    K = [[H, A'],      K [Dy; -Dlam] = -[B; C]
         [A, 0 ]]

and K may be regular where H is not: so K is factored as a whole and neither H^-1 nor B is ever formed. Rows that are not
active (or were dropped as dependent) keep their place as rows of the identity, which lets a whole batch with different
active sets share one factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.implicit.nonsmooth import balances_at_kink
from tacit.implicit.policy import Implicit
from tacit.linalg import Factor, equilibrate, factor, minimum_norm_map
from tacit.problem import Instance
from tacit.problem.active_set import RowState
from tacit.problem.flags import Flag
from tacit.problem.letters import Letters, letters
from tacit.problem.scales import unknown_scale
from tacit.shapes import Bool, Float, Int, Tensor

__all__ = ["Linearisation", "kept_rows", "kkt_matrix", "kkt_residual", "linearise", "mark"]

_SINGULAR = 256.0  # times eps: the reciprocal condition number of an equilibrated K below which it counts as singular


@dataclass(frozen=True)
class Linearisation:
    """The KKT system of every sample, factored, with what was found on the way.

    Attributes:
        keep: `(b, r)`, rows that take part.
        flags: `(b,)` int64, bits of `Flag`.
        dead: `(b,)`, samples whose gradient is zero: not stationary, not finite, not converged, or by policy.
        special: `(b,)`, samples solved by `inverse` because K is singular.
        matrix: K itself, with which a solution is refined.
        factor: LU of the equilibrated K (the identity for dead and special samples).
        inverse: `(b, N, N)` generalised inverses, or None where no sample is special.
    """

    keep: Bool[Tensor, "b r"]
    flags: Int[Tensor, " b"]
    dead: Bool[Tensor, " b"]
    special: Bool[Tensor, " b"]
    matrix: Float[Tensor, "b N N"]
    factor: Factor
    inverse: Float[Tensor, "b N N"] | None

    @property
    def regular(self) -> Bool[Tensor, " b"]:
        """Samples whose K is simply inverted."""
        return ~(self.special | self.dead)

    def solve(self, v: Float[Tensor, "b N k"]) -> Float[Tensor, "b N k"]:
        """K^-1 v, zero for dead samples; by the generalised inverse, symmetric like K, for special ones.

        One refinement makes zeros zero: multiplied by a large B, what rounding leaves in their place would show.
        """
        w = self.factor.solve(v, self.matrix)
        if self.inverse is not None:
            w = torch.where(self.special[:, None, None], self.inverse @ v, w)
        return torch.where(self.dead[:, None, None], 0.0, w)

    def explicit_inverse(self) -> Float[Tensor, "b N N"]:
        """K^-1 itself, for use where only matrix products are safe."""
        size = self.factor.lu.shape[1]
        eye = torch.eye(size, dtype=self.factor.lu.dtype, device=self.factor.lu.device)
        return self.solve(eye.expand(len(self.dead), size, size))


def kept_rows(state: Int[Tensor, "b r"], policy: Implicit) -> Bool[Tensor, "b r"]:
    """Active rows, and weakly active ones if the policy takes them in."""
    keep = state == RowState.ACTIVE
    return keep | (state == RowState.WEAK) if policy.weak == "active" else keep


def kkt_matrix(H: Float[Tensor, "b m m"], A: Float[Tensor, "b r m"], keep: Bool[Tensor, "b r"]) -> Tensor:
    """Assemble K, with rows of the identity in the place of rows that do not take part."""
    if A.shape[1] == 0:
        return H
    A = torch.where(keep[..., None], A, 0.0)
    corner = torch.diag_embed((~keep).to(H.dtype))
    return torch.cat([torch.cat([H, A.mT], dim=2), torch.cat([A, corner], dim=2)], dim=1)


def kkt_residual(stacked: Float[Tensor, "b N"], keep: Bool[Tensor, "b r"]) -> Float[Tensor, "b N"]:
    """R = [L_Y; rows], zero in the place of rows that do not take part."""
    m = stacked.shape[1] - keep.shape[1]
    return torch.cat([stacked[:, :m], torch.where(keep, stacked[:, m:], 0.0)], dim=1)


def linearise(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    state: Int[Tensor, "b r"],
    failed: Bool[Tensor, " b"],
    policy: Implicit,
    *,
    broken: Bool[Tensor, " b"] | None = None,
    refuse: bool = True,
) -> Linearisation:
    """Factor K for every sample and find out what is unusual about it.

    Args:
        failed: samples whose solve did not converge.
        broken: samples known to hold NaN, whatever the numbers now in their place.
        refuse: count samples that are not stationary or did not converge as dead.
    """
    keep = kept_rows(state, policy)
    found = letters(instance, y, lam)
    R, K = kkt_residual(torch.cat([found.L_Y, found.rows], dim=1), keep), kkt_matrix(found.H, found.A, keep)
    finite = (K.abs().amax((1, 2)) + R.abs().amax(1)).isfinite()  # a maximum carries NaN along, and is cheap
    if broken is not None:
        finite = finite & ~broken
    flags = torch.zeros(instance.batch, dtype=torch.int64, device=y.device)
    flags = mark(flags, ~finite, Flag.NONFINITE)
    flags = mark(flags, failed, Flag.UNCONVERGED)
    flags = mark(flags, (state == RowState.WEAK).any(1), Flag.WEAKLY_ACTIVE)
    flags = mark(flags, (state == RowState.DEPENDENT).any(1), Flag.DEPENDENT)
    if not bool(finite.all()):
        K = torch.where(finite[:, None, None], K, torch.eye(K.shape[1], dtype=K.dtype, device=K.device))
        R = torch.where(finite[:, None], R, 0.0)
    eps = torch.finfo(y.dtype).eps
    scale = unknown_scale(instance, y.nan_to_num(1.0, 1.0, 1.0))
    own = unknown_scale(instance, y.nan_to_num(1.0, 1.0, 1.0), eps) if instance.batch else scale
    factored = factor(K, _scale_of(K, found, keep, (scale, own)))
    singular = finite & (factored.rcond < _SINGULAR * eps)
    flags = mark(flags, singular, Flag.SINGULAR)
    away = _distance(factored, R, scale, singular, policy, K)
    slack = torch.clamp(256 * eps / factored.rcond.clamp_min(eps), max=1e-2)
    rough = finite & (away > torch.where(singular, 0.0, slack).clamp_min(policy.stationary_within(y.dtype)))
    if bool(rough.any()):
        kink = rough.clone()
        kink[rough] = balances_at_kink(instance.take(rough), y[rough], lam[rough], keep[rough])
        flags = mark(flags, kink, Flag.NONSMOOTH)
        flags = mark(flags, rough & ~kink, Flag.NOT_STATIONARY)
        rough = rough & ~kink
    dead = ~finite | rough | failed if refuse else ~finite
    if policy.singular == "zero":
        dead = dead | singular
    special = singular & ~dead
    inverse = None
    if bool(special.any()):
        inverse = K.new_zeros(K.shape)
        inverse[special] = _generalised_inverse(found, keep, special, policy)
    return Linearisation(keep, flags, dead, special, K, factored, inverse)


def mark(flags: Int[Tensor, " b"], where: Bool[Tensor, " b"], flag: Flag) -> Int[Tensor, " b"]:
    """Set a flag where it holds."""
    return flags | where.to(torch.int64) * int(flag)


def _scale_of(K: Tensor, found: Letters, keep: Tensor, scales: tuple[Tensor, ...]) -> Tensor:
    """Equilibrate K as a whole, not counting entries that are nothing but rounding.

    An entry of H is rounding if it is below 64 eps of the largest, both as it stands and in natural units, whichever of
    the `scales` are those; H as a whole is rounding where it is that small beside the forces at work. A row of A is
    measured against itself.
    """
    eps = torch.finfo(K.dtype).eps
    m, N = found.H.shape[1], K.shape[1]
    if N == 0 or K.shape[0] == 0:
        return K.new_ones(K.shape[:2])
    size = K.abs()
    H, A = size[:, :m, :m], size[:, m:, :m]
    small = H < 64 * eps * H.amax((1, 2), keepdim=True)
    if N == m and not bool(small.any()):
        return equilibrate(K)  # the usual dense case, and half the work
    for scale in scales:
        natural = H * scale[:, :, None] * scale[:, None, :]
        forces = torch.maximum(natural.amax((1, 2)), (found.L_Y.nan_to_num(0.0, 0.0, 0.0) * scale).abs().amax(1))
        small &= natural < 64 * eps * forces[:, None, None]
    if N == m:
        return equilibrate(K, ignore=small)
    ignore = torch.zeros_like(K, dtype=torch.bool)
    ignore[:, :m, :m] = small
    ignore[:, m:, :m] = A < 64 * eps * A.amax(2, keepdim=True)
    for scale in scales:
        natural = A * scale[:, None, :]
        ignore[:, m:, :m] &= natural < 64 * eps * natural.amax(2, keepdim=True)
    ignore[:, :m, m:] = ignore[:, m:, :m].mT
    first = _balanced_blocks(H * ~small, A)
    return first * equilibrate(first[:, :, None] * size * first[:, None, :], ignore=ignore)


def _balanced_blocks(H: Float[Tensor, "b m m"], A: Float[Tensor, "b r m"]) -> Float[Tensor, "b N"]:
    """A first scale that takes H near one by itself, then every row of A.

    Scaling rows and columns alone leaves one freedom: y up and lam down by the same factor keeps A and changes H. Rows
    stated in other units (1e12 times as large) would push H to nothing.
    """
    present = H.amax(2) > 0
    own = equilibrate(H).log2()
    typical = (own * present).sum(1, keepdim=True) / present.sum(1, keepdim=True).clamp_min(1)
    of_y = torch.exp2(torch.where(present, own, typical.round()))
    reach = (A * of_y[:, None, :]).amax(2)
    of_rows = torch.exp2(-torch.where(reach > 0, reach, 1.0).log2().round())
    return torch.cat([of_y, of_rows], dim=1)


def _distance(
    factored: Factor, R: Tensor, scale: Tensor, singular: Tensor, policy: Implicit, K: Tensor
) -> Float[Tensor, " b"]:
    """How far y is from the KKT point, relative to the size of y: the length of the Newton step.

    Where K is singular there is no Newton step; then the residual is measured against the entries of K times y.
    """
    m = scale.shape[1]
    if R.shape[0] == 0:
        return R.new_zeros(0)
    unit = scale.amax(1)
    step = factored.solve(R[..., None])[:, :m, 0].abs().amax(1) / unit
    size = (K[:, :m, :m].abs() @ scale[..., None])[..., 0].amax(1)
    pull = (R[:, :m].abs()).amax(1) / size.clamp_min(torch.finfo(R.dtype).tiny)
    if R.shape[1] > m:
        length = (K[:, m:, :m].abs() @ scale[..., None])[..., 0]
        miss = (R[:, m:].abs() / length.clamp_min(torch.finfo(R.dtype).tiny)).amax(1)
        pull = torch.where(size > 0, pull, 0.0).maximum(miss)
    return torch.where(singular, torch.where(R.abs().amax(1) > 0, pull, 0.0), step)


def _generalised_inverse(found: Letters, keep: Tensor, special: Tensor, policy: Implicit) -> Tensor:
    """The map from a right-hand side to `(Dy, -Dlam)` where K is singular, by policy."""
    H, rows = found.H[special], keep[special]
    A = torch.where(rows[..., None], found.A[special], 0.0)
    if policy.singular == "proximal":
        size = H.abs().amax((1, 2)).clamp_min(torch.finfo(H.dtype).tiny)
        H = H + torch.diag_embed((policy.delta * torch.where(size > 0, size, 1.0))[:, None].expand(-1, H.shape[1]))
    return minimum_norm_map(H, A).G
