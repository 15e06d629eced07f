"""The functions people call."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.autograd import forward_ad

from tacit.errors import ConvergenceError, InputTypeError, SolverWarning
from tacit.implicit import Implicit
from tacit.nn.functional.quadratic.answer import Answer, find_answer, pick_engine
from tacit.nn.functional.quadratic.arguments import Arguments, read_arguments
from tacit.nn.functional.quadratic.rule import Plan, State, differentiate, differentiate_forward
from tacit.node.concrete import Dims, concrete
from tacit.node.transforms import forward_mode_order, is_transformed
from tacit.node.warn import list_samples
from tacit.options import check_choice, check_count
from tacit.problem import Solution, Status, describe
from tacit.shapes import Float, Shaped, Tensor

__all__ = ["ENGINES", "quadratic_program", "solve_quadratic_program"]

ENGINES = ("daqp", "torch")


@torch.compiler.disable
def quadratic_program(
    Q: Shaped[Tensor, "..."] | None = None,
    q: Shaped[Tensor, "..."] | None = None,
    A: Shaped[Tensor, "..."] | None = None,
    b: Shaped[Tensor, "..."] | None = None,
    G: Shaped[Tensor, "..."] | None = None,
    h: Shaped[Tensor, "..."] | None = None,
    *,
    engine: str | None = None,
    gradient: Implicit | None = None,
    on_failure: str | None = None,
    max_iter: int = 50,
) -> Float[Tensor, "*b n"]:
    """Solve convex quadratic programs; the answer is differentiable in all six matrices. DDN[quadratic-program]

        u(Q, q, A, b, G, h) = argmin_u 1/2 u'Qu + q'u   subject to   A u = b,  G u <= h

    Args:
        Q: `(n, n)`, positive semidefinite, of which the symmetric part counts; None for a linear program.
        q: `(n,)`. A, b: `(p, n)`, `(p,)`. G, h: `(q, n)`, `(q,)`. Each may be None, be shared by all samples as it
            stands, or have a batch axis in front; the gradient of what is shared is the sum over the batch.
        engine: what proposes the active rows: "daqp" (needs the package), "torch", or None for the faster one at hand.
        gradient: the policy at singular, dependent or weakly active points.
        on_failure: "warn", "raise" or "ignore", for samples without an answer or with an unusual gradient.
        max_iter: steps of the engine "torch".

    Returns:
        `(b, n)`, or `(n,)` when nothing has a batch axis.

    Raises:
        InputTypeError, InputValueError, OptionError: about an argument; never about a value.
        ConvergenceError: with `on_failure="raise"`, for samples without an answer.

    >>> q = torch.tensor([-3.0, 1.0], requires_grad=True)
    >>> u = quadratic_program(torch.eye(2), q, G=torch.eye(2), h=torch.ones(2))
    >>> u
    tensor([ 1., -1.], grad_fn=<...>)
    >>> torch.autograd.grad(u.sum(), q)
    (tensor([-0., -1.]),)
    """
    policy, on_failure = _options(engine, gradient, on_failure, max_iter)
    given = read_arguments((Q, q, A, b, G, h))
    with torch.autocast(given.tensors[0].device.type, enabled=False):
        u = _solve(given, engine, policy, on_failure, max_iter)
    if u.dtype != given.dtype:
        u = u.to(given.dtype)
    return u[0] if given.single else u


def solve_quadratic_program(
    Q: Shaped[Tensor, "..."] | None = None,
    q: Shaped[Tensor, "..."] | None = None,
    A: Shaped[Tensor, "..."] | None = None,
    b: Shaped[Tensor, "..."] | None = None,
    G: Shaped[Tensor, "..."] | None = None,
    h: Shaped[Tensor, "..."] | None = None,
    *,
    engine: str | None = None,
    gradient: Implicit | None = None,
    on_failure: str | None = None,
    max_iter: int = 50,
) -> Solution:
    """All that is known of the answers: `y`, multipliers, residual, iterations and status; detached, batch first.

    Takes the arguments of `quadratic_program`. Multipliers have the sign of `L = f - lam' rows`: never positive for
    inequalities.

    >>> s = solve_quadratic_program(torch.eye(1), torch.tensor([-3.0]), G=torch.eye(1), h=torch.ones(1))
    >>> s.y, s.inequality, s.status
    (tensor([[1.]]), tensor([[-2.]]), tensor([0]))
    """
    policy, on_failure = _options(engine, gradient, on_failure, max_iter)
    given = read_arguments((Q, q, A, b, G, h))
    chosen = pick_engine(engine, given.tensors[0].device)

    def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        found = find_answer(plain, dims, chosen, policy, max_iter)
        _report(found, on_failure)
        return found.u, found.nu, found.residual, found.iterations, found.status

    u, nu, residual, iterations, status = concrete(code, given.dims, given.tensors)
    p = given.p
    u, nu, residual = (t.to(given.dtype) for t in (u, nu, residual))
    return Solution(u, -nu[:, :p], -nu[:, p:], residual, iterations, status)


def _options(engine: str | None, gradient: Any, on_failure: str | None, max_iter: int) -> tuple[Implicit, str]:
    if engine is not None:
        check_choice("quadratic_program", "engine", engine, ENGINES)
    check_count("quadratic_program", "max_iter", max_iter)
    if on_failure is not None:
        check_choice("quadratic_program", "on_failure", on_failure, ("warn", "raise", "ignore"))
    if gradient is None:
        return _POLICIES[on_failure or "warn"], on_failure or "warn"
    if not isinstance(gradient, Implicit):
        raise InputTypeError(
            f"gradient expects tacit.Implicit(...); received {describe(gradient)}. The gradient of a quadratic program is "
            "exact; approximations exist for tacit.argmin."
        )
    return gradient, on_failure or gradient.on_failure


_POLICIES = {word: Implicit(on_failure=word) for word in ("warn", "raise", "ignore")}


def _solve(given: Arguments, engine: str | None, policy: Implicit, on_failure: str, max_iter: int) -> Tensor:
    chosen = pick_engine(engine, given.tensors[0].device)
    plan = Plan(given.dims, given.p, given.q, policy)
    tensors = given.tensors
    if given.batch == 0:
        return sum((t.sum() for t in tensors), tensors[1].new_zeros(())) * tensors[1].new_zeros(0, given.n)
    transformed = is_transformed()
    if not transformed and forward_ad._current_level < 0:
        found = find_answer(tensors, given.dims, chosen, policy, max_iter)
        _report(found, on_failure)
        if not torch.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return found.u
        plan.answer, plan.flags = found, [found.flags] if bool(found.flags.any()) else []
        return differentiate(plan, _state(found, found.u.new_zeros(0)), tensors)

    def code(dims: Dims, plain: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        found = find_answer(plain, dims, chosen, policy, max_iter)
        _report(found, on_failure)
        plan.flags = [found.flags] if bool(found.flags.any()) else []
        return _state(found, found.factors.inverse(found.u))

    u, nu, keep, dead, regular, inverse = concrete(code, given.dims, tensors)
    state = (u, nu, keep, dead, regular, inverse)
    order = forward_mode_order(tensors)
    if order:
        return differentiate_forward(plan, state, tensors, order)
    return differentiate(plan, state, tensors)


def _state(found: Answer, inverse: Tensor) -> State:
    return found.u, found.nu, found.keep, found.dead, found.regular, inverse


def _report(found: Answer, on_failure: str) -> None:
    """Warn once, or raise, about samples without an answer."""
    if on_failure == "ignore" or not bool(found.status.any()):
        return
    codes = found.status.tolist()
    parts = []
    for status in Status:
        samples = [i for i, code in enumerate(codes) if code == status]
        if samples and status != Status.CONVERGED:
            parts.append(f"{status.name}: samples {list_samples(samples)}")
    crooked = found.indefinite.nonzero().flatten().tolist()
    if crooked:
        parts.append(
            f"of these, Q is not positive semidefinite, even among the u with Au = b, in samples {list_samples(crooked)}: use "
            "Q = L @ L.mT + eps * eye, or tacit.argmin for a local minimum"
        )
    count = sum(code != Status.CONVERGED for code in codes)
    message = (
        f"{count} of {len(codes)} quadratic programs have no answer ({'; '.join(parts)}). Their u is no solution and their "
        "gradient will be zero. solve_quadratic_program(...).status tells which; on_failure='ignore' silences this."
    )
    if on_failure == "raise":
        raise ConvergenceError(message)
    warnings.warn(message, SolverWarning, stacklevel=5)
