"""The function people call."""

from __future__ import annotations

import warnings

import torch

from tacit.errors import ConvergenceError, InputValueError, SolverWarning
from tacit.implicit import Implicit
from tacit.nn.functional.conic.answer import ConicAnswer, find_answer
from tacit.nn.functional.conic.declared import count_rows, declared
from tacit.nn.functional.quadratic.rule import Plan, differentiate, differentiate_forward
from tacit.node.concrete import Dims, concrete
from tacit.node.transforms import forward_mode_order
from tacit.node.warn import list_samples
from tacit.options import check_choice, check_count
from tacit.problem import Status
from tacit.shapes import Bool, Float, Tensor
from tacit.solvers.external.clarabel import Cones

__all__ = ["cone_program"]


@torch.compiler.disable
def cone_program(
    P: Float[Tensor, "b n n"],
    c: Float[Tensor, "b n"],
    A: Float[Tensor, "b m n"],
    b: Float[Tensor, "b m"],
    cones: Cones,
    *,
    wanted: Bool[Tensor, " n"] | None = None,
    constant: Bool[Tensor, " m"] | None = None,
    gradient: Implicit | None = None,
    on_failure: str | None = None,
    max_iter: int = 200,
    threads: int | None = None,
) -> Float[Tensor, "b n"]:
    """Solve convex cone programs by Clarabel; the answer is differentiable in all four matrices, to any order.

        x(P, c, A, b) = argmin_x 1/2 x'Px + c'x   subject to   A x + s = b,  s in the cones

    Args:
        P: `(b, n, n)`, positive semidefinite. c: `(b, n)`. A: `(b, m, n)`. b: `(b, m)`. All have a batch axis.
        cones: `tacit.solvers.external.Cones`: how many rows of A belong to which cone.
        wanted: which unknowns will be looked at; None for all. The others may be free without a flag saying so.
        constant: which rows of A and b will never change; None for none. These may be dependent without a flag.
        gradient: the policy at singular, dependent or weakly active points.
        on_failure: "warn", "raise" or "ignore", for samples without an answer or with an unusual gradient.
        max_iter: steps of the engine.
        threads: programs solved at a time; None takes torch's number.

    Raises:
        MissingDependencyError: Clarabel is not installed.
        ConvergenceError: with `on_failure="raise"`, for samples without an answer.

    >>> disc = Cones(second_order=(3,))  # |x| <= 1
    >>> A, b = torch.tensor([[[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]]), torch.tensor([[1.0, 0.0, 0.0]])
    >>> cone_program(torch.zeros(1, 2, 2), torch.tensor([[-3.0, -4.0]]), A, b, disc)
    tensor([[0.6000, 0.8000]])
    """
    check_count("cone_program", "max_iter", max_iter)
    if on_failure is not None:
        check_choice("cone_program", "on_failure", on_failure, ("warn", "raise", "ignore"))
    policy = Implicit(on_failure=on_failure or "warn") if gradient is None else gradient
    _check_shapes(P, c, A, b, cones)
    if not c.shape[0]:
        return c + 0 * (P.sum() + A.sum() + b.sum())
    p, q = count_rows(cones)
    plan = Plan((0,) * 6, p, q, policy, problem=declared(cones))
    masks = (
        torch.ones(c.shape[1], dtype=torch.bool) if wanted is None else wanted,
        torch.zeros(cones.rows, dtype=torch.bool) if constant is None else constant,
    )
    workers = torch.get_num_threads() if threads is None else threads

    def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        del dims  # every input has the batch
        found = find_answer((plain[0], plain[1], plain[2], plain[3]), cones, *masks, policy, max_iter, workers)
        _report(found, on_failure or policy.on_failure)
        plan.flags = [found.flags] if bool(found.flags.any()) else []
        system = found.system
        return (
            *(found.x, -found.lam, system.keep, system.dead, system.regular, system.explicit_inverse()),
            *(found.W, found.x),
        )

    given = tuple(t.double() for t in (P, c, A, b))
    u, nu, keep, dead, regular, inverse, W, x_0 = concrete(code, (0,) * 4, given)
    state, tensors = (u, nu, keep, dead, regular, inverse), (*given, W, x_0)
    order = forward_mode_order(tensors)
    x = differentiate_forward(plan, state, tensors, order) if order else differentiate(plan, state, tensors)
    return x.to(c.dtype)


def _check_shapes(P: Tensor, c: Tensor, A: Tensor, b: Tensor, cones: Cones) -> None:
    batch, n = c.shape
    wanted = {"P": (batch, n, n), "A": (batch, cones.rows, n), "b": (batch, cones.rows)}
    for (name, shape), t in zip(wanted.items(), (P, A, b), strict=True):
        if tuple(t.shape) != shape:
            raise InputValueError(
                f"{name} expects shape {shape}, for c of shape {tuple(c.shape)} and cones of {cones.rows} rows; received "
                f"{tuple(t.shape)}. Every input has a batch axis: use .expand for what samples share."
            )


def _report(found: ConicAnswer, on_failure: str) -> None:
    """Warn once, or raise, about samples without an answer."""
    if on_failure == "ignore" or not bool(found.status.any()):
        return
    codes = found.status.tolist()
    parts = [
        f"{status.name}: samples {list_samples([i for i, code in enumerate(codes) if code == status])}"
        for status in Status
        if status != Status.CONVERGED and status in codes
    ]
    message = (
        f"{sum(code != Status.CONVERGED for code in codes)} of {len(codes)} convex programs have no answer "
        f"({'; '.join(parts)}). Their x is no solution and their gradient will be zero. on_failure='ignore' silences this."
    )
    if on_failure == "raise":
        raise ConvergenceError(message)
    warnings.warn(message, SolverWarning, stacklevel=6)
