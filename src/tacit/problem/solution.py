"""How an answer is reported: Status and Solution, sample by sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

from tacit.shapes import Float, Int, Shaped, Tensor

__all__ = ["Solution", "Status"]


class Status(IntEnum):
    """How the search for one sample ended. Everything but `CONVERGED` means: do not trust this `y`."""

    CONVERGED = 0
    MAX_ITERATIONS = 1
    INFEASIBLE = 2
    UNBOUNDED = 3
    NONFINITE = 4
    STALLED = 5


@dataclass(frozen=True)
class Solution:
    """All that is known of an answer, per sample; tensors are detached and have the batch first.

    Attributes:
        y: the solutions, `(b, *u)`.
        equality: multipliers of the equality rows, `(b, p)`, with the sign of `L = f - lambda' h`.
        inequality: multipliers of the inequality rows, `(b, q)`, never positive; zero where a row is inactive.
        residual: `(b,)`, the scaled size of the optimality conditions at `y` (0 is perfect).
        iterations: `(b,)`, steps the solver took.
        status: `(b,)`, values of `Status`.
    """

    y: Shaped[Tensor, "b *u"]
    equality: Float[Tensor, "b p"]
    inequality: Float[Tensor, "b q"]
    residual: Float[Tensor, " b"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]

    @property
    def converged(self) -> Shaped[Tensor, " b"]:
        """Which samples converged, `(b,)` boolean."""
        return self.status == Status.CONVERGED

    def __str__(self) -> str:
        counts = Counter(Status(code).name for code in self.status.tolist())
        summary = ", ".join(f"{number} {name}" for name, number in counts.items()) or "empty batch"
        lines = [
            f"Solution of {len(self.status)} samples: {summary}",
            f"{'sample':>8} {'status':<15} {'iterations':>10} {'residual':>10}  y",
        ]
        for i in range(min(len(self.status), 10)):
            head = ", ".join(f"{v:.4g}" for v in self.y[i].flatten()[:4].tolist())
            dots = ", ..." if self.y[i].numel() > 4 else ""
            lines.append(
                f"{i:>8} {Status(int(self.status[i])).name:<15} {int(self.iterations[i]):>10} "
                f"{float(self.residual[i]):>10.1e}  [{head}{dots}]"
            )
        if len(self.status) > 10:
            lines.append(f"{'...':>8} ({len(self.status) - 10} more)")
        return "\n".join(lines)
