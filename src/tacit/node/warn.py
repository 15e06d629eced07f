"""Tells a person what is unusual about a gradient: once a backward pass, naming samples and meaning."""

from __future__ import annotations

import warnings

from tacit.errors import GradientError, GradientWarning
from tacit.implicit import Implicit
from tacit.problem import Flag
from tacit.problem.flags import MEANING
from tacit.shapes import Int, Tensor

__all__ = ["list_samples", "report_flags"]


def report_flags(flags: Int[Tensor, " b"], policy: Implicit) -> None:
    """Warn once, or raise, naming samples and what their flags mean."""
    flagged = flags.nonzero().flatten().tolist()
    singular = [i for i in flagged if int(flags[i]) & Flag.SINGULAR]
    if singular and policy.singular == "raise":
        raise GradientError(
            f"samples {list_samples(singular)}: {MEANING[Flag.SINGULAR]}. Asked for by Implicit(singular='raise')."
        )
    if not flagged or policy.on_failure == "ignore":
        return
    lines = []
    for flag in Flag:
        samples = [i for i in flagged if int(flags[i]) & flag]
        if samples:
            lines.append(f"  {flag.name}, samples {list_samples(samples)}: {MEANING[flag]}.")
    message = f"{len(flagged)} of {len(flags)} samples have an unusual gradient:\n" + "\n".join(lines)
    message += "\ntacit.regularity(problem, *inputs, y=y) tells more; on_failure='ignore' silences this."
    if policy.on_failure == "raise":
        raise GradientError(message)
    warnings.warn(message, GradientWarning, stacklevel=2)


def list_samples(samples: list[int]) -> str:
    """The first few sample numbers."""
    head = ", ".join(str(i) for i in samples[:8])
    return head if len(samples) <= 8 else f"{head}, ... ({len(samples)} in all)"
