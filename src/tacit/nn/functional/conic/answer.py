"""Finds the answers of a batch of cone programs, on plain tensors, and which rows hold there.

Clarabel proposes; Newton's method on the rows that hold then brings the answer to rounding, and the conditions of
optimality, in the cones, decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from tacit.implicit import Implicit, Linearisation, kept_rows, kkt_matrix, kkt_residual, linearise
from tacit.linalg import independent_rows
from tacit.nn.functional.conic.declared import count_rows, declared, exponential_gap, split
from tacit.problem import Flag, Instance, Status
from tacit.problem.active_set import RowState
from tacit.problem.letters import letters
from tacit.shapes import Bool, Float, Int, Tensor
from tacit.solvers.external.clarabel import Cones, solve_cones
from tacit.solvers.linear import solve_or_least_norm

__all__ = ["ConicAnswer", "find_answer"]

_NEAR = 1e-8  # relative size under which a slack or a multiplier is zero, after polishing
_GOOD = 1e-8  # relative residual of an answer


@dataclass(frozen=True)
class ConicAnswer:
    """Answers, multipliers of the declared rows, how it went, and the KKT system."""

    x: Float[Tensor, "b n"]
    lam: Float[Tensor, "b r"]
    residual: Float[Tensor, " b"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]
    W: Float[Tensor, "b n n"]
    system: Linearisation

    @property
    def flags(self) -> Int[Tensor, " b"]:
        """What is unusual; of a sample without an answer only that."""
        without = (self.system.flags & int(Flag.UNCONVERGED)) != 0
        plain = self.system.flags & (int(Flag.UNCONVERGED) | int(Flag.NONFINITE))
        return torch.where(without, plain, self.system.flags)


@dataclass(frozen=True)
class _Point:
    """A point, multipliers of its declared rows, and which rows hold, for one choice of them."""

    x: Float[Tensor, "b n"]
    lam: Float[Tensor, "b r"]
    state: Int[Tensor, "b r"]
    residual: Float[Tensor, " b"]

    def where(self, mask: Bool[Tensor, " b"], other: _Point) -> _Point:
        """This point where the mask holds, else the other."""

        def choose(mine: Tensor, theirs: Tensor) -> Tensor:
            return torch.where(mask.reshape(-1, *(1,) * (mine.dim() - 1)), mine, theirs)

        return _Point(*(choose(getattr(self, k), getattr(other, k)) for k in ("x", "lam", "state", "residual")))


@torch.no_grad()
def find_answer(
    data: tuple[Tensor, Tensor, Tensor, Tensor],
    cones: Cones,
    wanted: Bool[Tensor, " n"],
    constant: Bool[Tensor, " m"],
    policy: Implicit,
    max_iter: int,
    threads: int,
) -> ConicAnswer:
    """Solve `(P, c, A, b)`, all batched, in float64; a sample that holds NaN has a status and no answer.

    Unknowns that are not `wanted` may be free, and `constant` rows of A and b may depend on each other: neither is a
    flaw of the answer.
    """
    finite = torch.stack([part.isfinite().flatten(1).all(1) for part in data]).all(0)
    P, c, A, b = (torch.where(finite.reshape(-1, *(1,) * (t.dim() - 1)), t, 0.0) for t in data)
    P = 0.5 * (P + P.mT)
    found = solve_cones(P, c, A, b, cones, max_iter, threads)
    p, q = count_rows(cones)
    x, W = found.x.nan_to_num(0.0, 0.0, 0.0), torch.zeros_like(P)
    instance = Instance(declared(cones), (P, c, A, b, W, x), (0,) * 6, c.shape[1:], len(c), p, q)
    best = _polished(instance, cones, _settled(instance, cones, x, found.z.nan_to_num(0.0, 0.0, 0.0)))
    status = torch.where(found.status == Status.CONVERGED, int(Status.STALLED), found.status)
    certain = (found.status == Status.INFEASIBLE) | (found.status == Status.UNBOUNDED)
    status = torch.where((best.residual <= _GOOD) & ~certain, int(Status.CONVERGED), status)
    status = torch.where(finite, status, int(Status.NONFINITE))
    failed = status != Status.CONVERGED
    best = replace(best, state=_independent(instance, cones, best, constant))
    W = _unwanted_freedom(instance, best, wanted, policy)
    instance = instance.with_values((P, c, A, b, W, best.x))
    system = linearise(instance, best.x, best.lam, best.state, failed, policy, broken=~finite)
    shown = torch.where(finite[:, None], best.x, float("nan"))
    residual = torch.where(finite, best.residual, torch.inf)
    return ConicAnswer(shown, best.lam, residual, found.iterations, status, W, system)


def _independent(instance: Instance, cones: Cones, at: _Point, constant: Bool[Tensor, " m"]) -> Int[Tensor, "b r"]:
    """The states with rows taken out that others imply: as DEPENDENT, or silently if they will imply them forever.

    Multipliers stay as they are: those of all rows together balance the forces, whichever rows are then kept.
    """
    zero, nonnegative, second_order, _ = split(constant, cones)
    curved = torch.zeros(len(second_order) + cones.exponential, dtype=torch.bool, device=constant.device)
    fixed = torch.cat([zero, *second_order, nonnegative, curved]).expand_as(at.state)
    A, active = instance.jacobian(at.x), at.state != RowState.INACTIVE
    implied = active & fixed & ~independent_rows(A, active & fixed)
    active = active & ~implied
    dependent = active & ~independent_rows(A, active, fixed | (at.lam != 0))
    state = torch.where(implied, int(RowState.INACTIVE), at.state)
    return torch.where(dependent, int(RowState.DEPENDENT), state).to(torch.int8)


def _unwanted_freedom(
    instance: Instance, at: _Point, wanted: Bool[Tensor, " n"], policy: Implicit
) -> Float[Tensor, "b n n"]:
    """W: the directions along which nothing changes, where none of them moves what is wanted; else nothing."""
    found = letters(instance, at.x, at.lam)
    rows = torch.where(kept_rows(at.state, policy)[..., None], found.A, 0.0)
    unit = torch.cat([found.H, rows], 1)
    unit = unit / unit.abs().amax(2, keepdim=True).clamp_min(1e-300)
    values, vectors = torch.linalg.eigh(unit.mT @ unit)
    free = values <= 1e-13 * len(wanted) * values.amax(1, keepdim=True).clamp_min(1.0)
    directions = torch.where(free[:, None, :], vectors, 0.0)
    harmless = (directions[:, wanted].abs() <= 1e-6).flatten(1).all(1)
    size = found.H.abs().amax((1, 2)).clamp_min(1e-300).sqrt()
    size = torch.where(found.H.abs().amax((1, 2)) > 0, size, 1.0)
    return torch.where(harmless[:, None, None], size[:, None, None] * (directions @ directions.mT), 0.0)


def _polished(instance: Instance, cones: Cones, point: _Point) -> _Point:
    """Newton's steps on the rows that hold; a step that makes it worse is not taken."""
    m, best = instance.m, point
    for _ in range(4):
        keep = best.state != RowState.INACTIVE
        at = letters(instance, best.x, best.lam)
        R = kkt_residual(torch.cat([at.L_Y, at.rows], 1), keep)
        step = solve_or_least_norm(kkt_matrix(at.H, at.A, keep), -R)
        x, lam = best.x + step[:, :m], torch.where(keep, best.lam - step[:, m:], 0.0)
        new = _settled(instance, cones, x, _cone_multipliers(instance, cones, x, lam))
        better = new.residual < best.residual
        best = new.where(better, best)
        if not bool((better & (best.residual > 1e-16)).any()):
            break
    return best


def _slack(instance: Instance, x: Float[Tensor, "b n"]) -> tuple[Tensor, Tensor]:
    """s = b - A x, and the size of what cancels in it: at least that of an x of a thousandth, should all of it be zero."""
    A, b = instance.values[2:4]
    Ax = (A @ x[:, :, None])[:, :, 0]
    least = 1e-3 * A.abs().amax((1, 2))[:, None] if A.shape[1] else torch.ones_like(x[:, :1])
    largest = torch.cat([b, Ax, least.clamp_min(1e-300)], 1).abs().amax(1, keepdim=True)
    return b - Ax, largest


def _cone_multipliers(instance: Instance, cones: Cones, x: Tensor, lam: Tensor) -> Float[Tensor, "b m"]:
    """z, row by row of A, from the multipliers of the declared rows."""
    _, _, second_order, exponential = split(_slack(instance, x)[0], cones)
    sizes = [cones.zero, *cones.second_order, cones.nonnegative, len(cones.second_order), cones.exponential]
    zero, *rest = (-lam).split(sizes, 1)
    apex, (nonnegative, round_, curved) = rest[:-3], rest[-3:]
    parts = [zero, nonnegative]
    for i, (s, z) in enumerate(zip(second_order, apex, strict=True)):
        parts.append(z + round_[:, i : i + 1] * torch.cat([s[:, :1], -s[:, 1:]], 1))
    height = torch.where(exponential[..., 1] > 0, exponential[..., 1], 1.0)
    slope = exponential[..., 0] / height
    grown = slope.exp()
    normal = torch.stack([-grown, -grown * (1 - slope), torch.ones_like(grown)], -1)
    parts.append((curved[..., None] * normal).flatten(1))
    return torch.cat(parts, 1)


def _settled(instance: Instance, cones: Cones, x: Float[Tensor, "b n"], z: Float[Tensor, "b m"]) -> _Point:
    """Which rows hold at (x, z), with what multipliers, and how far that is from optimal."""
    P, c, A = instance.values[:3]
    s, size = _slack(instance, x)
    pull = torch.stack([(P @ x[:, :, None])[:, :, 0], c, (A.mT @ z[:, :, None])[:, :, 0]]).abs().amax((0, 2))
    # Forces that all vanish still have a size, that at an x of a thousandth.
    pull = torch.maximum(pull, 1e-3 * P.abs().amax((1, 2)))
    pull = torch.where(pull > 0, pull, 1.0)[:, None]
    zero_z, nonnegative_z, second_order_z, exponential_z = split(z, cones)
    _, nonnegative, second_order, exponential = split(s, cones)
    slack, force = [nonnegative / size], [nonnegative_z / pull]
    lam_apex, lam_round, state_apex, state_round, cone_gaps = [], [], [], [], []
    for t, w in zip(second_order, second_order_z, strict=True):
        (s_low, s_high), (z_low, z_high) = _spectrum(t / size), _spectrum(w / pull)
        apex = z_low > s_high
        edge = (z_high > s_low) & ~apex
        tight, firm = torch.maximum(s_high, z_low) <= _NEAR, torch.maximum(s_low, z_high) <= _NEAR
        state_apex.append(_state(apex, apex & tight).expand_as(t))
        state_round.append(_state(edge, firm & ~apex))
        lam_apex.append(torch.where(apex, -w, 0.0))
        lam_round.append(torch.where(edge, -w[:, :1] / torch.where(edge, t[:, :1], 1.0), 0.0))
        cone_gaps += [torch.minimum(s_low, z_high).abs(), torch.minimum(s_high, z_low).abs(), -s_low, -z_low]
    gap = -exponential_gap(exponential) / size
    slack.append(gap)
    force.append(exponential_z[..., 2] / pull)
    slacks, forces = torch.cat(slack, 1), torch.cat(force, 1)
    active, weak = forces > slacks, torch.maximum(forces, slacks) <= _NEAR
    k = cones.nonnegative
    rows = [_state(torch.ones_like(zero_z, dtype=torch.bool), torch.zeros_like(zero_z, dtype=torch.bool)), *state_apex]
    rows += [_state(active[:, :k], weak[:, :k]), *state_round, _state(active[:, k:], weak[:, k:])]
    curved = torch.where(active[:, k:], -exponential_z[..., 2], 0.0)
    lam = [-zero_z, *lam_apex, torch.where(active[:, :k], -nonnegative_z, 0.0), *lam_round, curved]
    state, multipliers = torch.cat(rows, 1), torch.cat(lam, 1)
    z = _cone_multipliers(instance, cones, x, multipliers)
    left = (P @ x[:, :, None])[:, :, 0] + c + (A.mT @ z[:, :, None])[:, :, 0]
    parts = [left.abs() / pull, split(s, cones)[0].abs() / size, torch.minimum(slacks, forces).abs(), *cone_gaps]
    parts += [(-torch.minimum(slacks, forces)).clamp_min(0.0)]
    return _Point(x, multipliers, state, torch.cat(parts, 1).clamp_min(0.0).amax(1).nan_to_num(torch.inf))


def _spectrum(v: Float[Tensor, "b k"]) -> tuple[Float[Tensor, "b 1"], Float[Tensor, "b 1"]]:
    """`v_0 -+ |v_1..|`: both are nonnegative inside a second-order cone."""
    length = v[:, 1:].norm(dim=1, keepdim=True)
    return v[:, :1] - length, v[:, :1] + length


def _state(active: Bool[Tensor, "b k"], weak: Bool[Tensor, "b k"]) -> Int[Tensor, "b k"]:
    state = torch.where(active, int(RowState.ACTIVE), int(RowState.INACTIVE))
    return torch.where(weak, int(RowState.WEAK), state).to(torch.int8)
