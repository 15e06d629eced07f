"""What is unusual about one sample's gradient: the assumptions of the propositions that fail there."""

from __future__ import annotations

from enum import IntFlag

__all__ = ["MEANING", "Flag"]


class Flag(IntFlag):
    """Bits of a sample's report; 0 means that every assumption holds and the gradient is the derivative."""

    SINGULAR = 1
    DEPENDENT = 2
    WEAKLY_ACTIVE = 4
    NOT_STATIONARY = 8
    NOT_MINIMUM = 16
    NONFINITE = 32
    NONSMOOTH = 64
    UNCONVERGED = 128


MEANING: dict[Flag, str] = {
    Flag.SINGULAR: (
        "the KKT matrix is singular: the solution is not isolated, and the gradient is the minimum-norm one (or follows "
        "the policy `singular`). Remove the free direction with a constraint, or add a small strongly convex term"
    ),
    Flag.DEPENDENT: (
        "active constraint rows depend on each other, vanish, or outnumber the unknowns: multipliers are not unique, and "
        "redundant rows were dropped. State each condition once, and not as a sum of squares"
    ),
    Flag.WEAKLY_ACTIVE: (
        "an inequality holds with equality but its multiplier is zero: the gradient is one-sided. The policy `weak` says "
        "which side is taken"
    ),
    Flag.NOT_STATIONARY: (
        "y does not satisfy the optimality conditions, so it has no derivative to speak of; its gradient is zero. Solve "
        "more accurately, or raise Implicit(stationarity_tol=...) if y is only meant to be approximate"
    ),
    Flag.NOT_MINIMUM: (
        "y is stationary but not a minimum: the curvature is negative along a feasible direction. The gradient is that of "
        "this stationary point"
    ),
    Flag.NONFINITE: "an input, y, or a function's value or derivative is NaN or infinite; the gradient is zero",
    Flag.NONSMOOTH: (
        "y lies on a kink of the objective or a constraint: the gradient is one element of the generalised derivative"
    ),
    Flag.UNCONVERGED: "the solver did not converge for this sample; its gradient is zero",
}
