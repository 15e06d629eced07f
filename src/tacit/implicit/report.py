"""The regularity report: which assumptions of the propositions hold at y, and what the gradient means where they fail."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.implicit.kkt import linearise
from tacit.implicit.nonsmooth import has_kink
from tacit.implicit.policy import Implicit
from tacit.implicit.vjp import pull_back_rows
from tacit.linalg import reduced_inertia
from tacit.problem import Flag, Instance, flatten_samples, is_differentiable
from tacit.problem.active_set import RowState
from tacit.problem.flags import MEANING
from tacit.problem.letters import letters
from tacit.shapes import Float, Int, Tensor

__all__ = ["Regularity", "examine_regularity"]


@dataclass(frozen=True)
class Regularity:
    """What is known of each sample's gradient; print it.

    Attributes:
        flags: `(b,)` bits of `Flag`; 0 means that every assumption holds.
        rcond: `(b,)` reciprocal condition number of the equilibrated KKT matrix.
        rank: `(b,)` number of independent active rows.
        least_curvature: `(b,)` least eigenvalue of the Hessian along the constraints, relative to its size; infinite where
            the constraints leave no freedom.
        residual: `(b,)` scaled size of the first-order conditions.
        state: `(b, r)` values of `tacit.problem.active_set.RowState`, equalities first.
        lam: `(b, r)` multipliers.
    """

    flags: Int[Tensor, " b"]
    rcond: Float[Tensor, " b"]
    rank: Int[Tensor, " b"]
    least_curvature: Float[Tensor, " b"]
    residual: Float[Tensor, " b"]
    state: Int[Tensor, "b r"]
    lam: Float[Tensor, "b r"]
    p: int
    m: int
    policy: Implicit

    @property
    def regular(self) -> Tensor:
        """Samples where every assumption holds, `(b,)` boolean."""
        return self.flags == 0

    def __str__(self) -> str:
        total = len(self.flags)
        regular = int(self.regular.sum())
        q = self.state.shape[1] - self.p
        lines = [
            f"Regularity of {total} samples: {self.m} unknowns, {self.p} equality rows, {q} inequality rows.",
            f"{regular} regular: y is isolated and differentiable, and the gradient is the derivative.",
        ]
        for flag in Flag:
            samples = ((self.flags & int(flag)) != 0).nonzero().flatten().tolist()
            if samples:
                head = ", ".join(map(str, samples[:8])) + (", ..." if len(samples) > 8 else "")
                lines.append(f"{flag.name} in {len(samples)} (samples {head}): {MEANING[flag]}.")
        lines.append(
            f"{'sample':>8} {'flags':<24} {'active':>6} {'weak':>5} {'depend.':>7} {'rank':>5} {'rcond':>9} "
            f"{'curvature':>10} {'residual':>9}"
        )
        shown = (~self.regular).nonzero().flatten().tolist()[:10] or list(range(min(total, 3)))
        lines += [self._row(i) for i in shown]
        return "\n".join(lines)

    def _row(self, i: int) -> str:
        names = [flag.name or "" for flag in Flag if int(self.flags[i]) & flag]
        count = {state: int((self.state[i] == state).sum()) for state in RowState}
        return (
            f"{i:>8} {', '.join(names) or '-':<24} {count[RowState.ACTIVE]:>6} {count[RowState.WEAK]:>5} "
            f"{count[RowState.DEPENDENT]:>7} {int(self.rank[i]):>5} {float(self.rcond[i]):>9.1e} "
            f"{float(self.least_curvature[i]):>10.1e} {float(self.residual[i]):>9.1e}"
        )


def examine_regularity(
    instance: Instance,
    y: Float[Tensor, "b m"],
    lam: Float[Tensor, "b r"],
    state: Int[Tensor, "b r"],
    failed: Tensor,
    policy: Implicit,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Flags, rcond, rank of the active rows and least curvature along them, per sample."""
    broken = failed.clone()
    known = linearise(instance, y, lam, state, torch.zeros_like(failed), policy, broken=broken)
    flags = known.flags
    fine = (flags & int(Flag.NONFINITE)) == 0
    found = letters(instance, y, lam)
    strong = state == RowState.ACTIVE  # along weakly active rows y may leave: only the strong ones hold it
    A = torch.where(strong[..., None], found.A, 0.0)
    least, negative = reduced_inertia(
        torch.where(fine[:, None, None], found.H, 0.0), torch.where(fine[:, None, None], A, 0.0)
    )
    weak = ((state == RowState.WEAK) | (state == RowState.DEPENDENT)).any(1)
    kept = torch.where(known.keep[..., None] & fine[:, None, None], found.A, 0.0)
    with_weak, negative_inside = reduced_inertia(torch.where(fine[:, None, None], found.H, 0.0), kept)
    saddle = torch.where(weak, negative_inside > 0, negative > 0) & fine
    flags = flags | saddle.to(torch.int64) * int(Flag.NOT_MINIMUM)
    settled = fine & ((flags & int(Flag.NOT_STATIONARY)) == 0)
    if bool(settled.any()):
        kink = torch.zeros_like(settled)
        kink[settled] = has_kink(instance.take(settled), y[settled], lam[settled])
        flags = flags | kink.to(torch.int64) * int(Flag.NONSMOOTH)
        flags = flags | (settled & ~_has_finite_pull(instance, y, lam)).to(torch.int64) * int(Flag.NONFINITE)
    return flags, known.factor.rcond, known.keep.sum(1), torch.where(weak, with_weak, least)


def _has_finite_pull(instance: Instance, y: Tensor, lam: Tensor) -> Tensor:
    """Whether the derivatives in the inputs, B and C, are finite, `(b,)`: one product with them tells."""
    positions = [i for i, value in enumerate(instance.values) if is_differentiable(value)]
    w = y.new_ones((*y.shape[:1], instance.m + instance.r, 1))
    finite = torch.ones(instance.batch, dtype=torch.bool, device=y.device)
    for rows in pull_back_rows(instance, y, lam, w, positions):
        finite &= flatten_samples(rows).isfinite().all(1)
    return finite
