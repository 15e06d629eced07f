"""Finds the answers of a batch of quadratic programs, on plain tensors, and keeps the factors their gradients need.

An engine proposes the active rows; the KKT system of those rows then gives the answer, refined to rounding, and a sample
is done if every sign is right with room to spare. What is left (a semidefinite Q, dependent or weakly active rows,
programs without an answer) goes the general way: the interior point of `tacit.solvers`, and the KKT engine that every
declared problem uses, so that a degenerate program means the same here as there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tacit.implicit import Implicit, Linearisation, linearise
from tacit.nn.functional.quadratic.arguments import declared
from tacit.nn.functional.quadratic.reduced import (
    Reduced,
    factor_active,
    product,
    to_least_distance,
    transposed_product,
)
from tacit.problem import Flag, Instance, Status
from tacit.problem.active_set import find_active_set
from tacit.shapes import Bool, Float, Int, Shaped, Tensor
from tacit.solvers import Program, solve_quadratic
from tacit.solvers.external.least_distance import daqp_is_installed, least_distance

__all__ = ["Answer", "Factors", "find_answer", "pick_engine"]

_ROOM = 1e-6  # relative size of a multiplier or a slack that is plainly not zero; the general way decides below


@dataclass(frozen=True)
class Factors:
    """The KKT system of every sample, factored: `fast` by reduction, the samples `slow` by the general engine."""

    fast: Reduced | None
    slow: Int[Tensor, " k"]
    general: Linearisation | None
    keep: Bool[Tensor, "b r"]

    def solve(self, v: Float[Tensor, "b n j"], w: Float[Tensor, "b r j"]) -> tuple[Tensor, Tensor]:
        """`K^-1 [v; w]`, with zero for rows that do not take part and for samples without an answer."""
        dtype = v.dtype
        if self.general is None and self.fast is not None:
            working = self.fast.form.L.dtype
            if working == dtype:
                return self.fast.solve(v, w)
            x, nu = self.fast.solve(v.to(working), w.to(working))
            return x.to(dtype), nu.to(dtype)
        x, nu = torch.zeros_like(v), torch.zeros_like(w)
        if self.fast is not None:
            working = self.fast.form.L.dtype
            x, nu = (part.to(dtype) for part in self.fast.solve(v.to(working), w.to(working)))
        if self.general is not None:
            n = v.shape[1]
            right = torch.cat([v[self.slow], torch.where(self.keep[self.slow].unsqueeze(2), w[self.slow], 0.0)], 1)
            found = self.general.solve(right)
            x, nu = x.index_copy(0, self.slow, found[:, :n]), nu.index_copy(0, self.slow, found[:, n:])
        return x, torch.where(self.keep.unsqueeze(2), nu, 0.0)

    def inverse(self, like: Float[Tensor, "b n"]) -> Float[Tensor, "b N N"]:
        """K^-1 with zeros for rows that do not take part, for use where only matrix products are safe."""
        (b, n), r = like.shape, self.keep.shape[1]
        eye = torch.eye(n + r, dtype=like.dtype, device=like.device).expand(b, n + r, n + r)
        x, nu = self.solve(eye[:, :n], eye[:, n:])
        # A row that does not take part is a row of the identity in K.
        return torch.cat([x, nu], 1) + torch.diag_embed(torch.cat([torch.zeros_like(like), (~self.keep).to(like)], 1))


@dataclass(frozen=True)
class Answer:
    """Answers, multipliers (`Qu + q + A'nu_A + G'nu_G = 0`), what is active, how it went, and the factors.

    `dead` marks samples whose gradient is zero; `regular`, those whose KKT matrix is simply inverted.
    """

    u: Float[Tensor, "b n"]
    nu: Float[Tensor, "b r"]
    keep: Bool[Tensor, "b r"]
    dead: Bool[Tensor, " b"]
    regular: Bool[Tensor, " b"]
    flags: Int[Tensor, " b"]
    status: Int[Tensor, " b"]
    iterations: Int[Tensor, " b"]
    residual: Float[Tensor, " b"]
    indefinite: Bool[Tensor, " b"]
    factors: Factors


@dataclass(frozen=True)
class _Batch:
    """The six in the order Q, q, A, b, G, h, vectors batched, matrices with a leading 1 where they are shared."""

    Q: Float[Tensor, "cQ n n"]
    q: Float[Tensor, "b n"]
    A: Float[Tensor, "cA p n"]
    b: Float[Tensor, "b p"]
    G: Float[Tensor, "cG q n"]
    h: Float[Tensor, "b q"]

    def program(self, index: Int[Tensor, " k"] | None = None) -> Program:
        """Some of them, or all, as the interior point takes them."""

        def pick(t: Tensor) -> Tensor:
            whole = t.expand(len(self.q), *t.shape[1:])
            return whole if index is None else whole[index]

        return Program(pick(self.Q), pick(self.q), pick(self.A), pick(self.b), pick(self.G), pick(self.h))


def pick_engine(engine: str | None, device: torch.device) -> str:
    """DAQP where it is installed and the numbers are in its reach, else the interior point in torch."""
    if engine is not None:
        return engine
    return "daqp" if device.type == "cpu" and daqp_is_installed() else "torch"


@torch.no_grad()
def find_answer(
    tensors: tuple[Shaped[Tensor, "..."], ...],
    dims: tuple[int | None, ...],
    engine: str,
    policy: Implicit,
    max_iter: int,
) -> Answer:
    """Solve, sample by sample strangers to each other."""
    given = tensors[1].dtype
    batch = next(t.shape[0] for t, d in zip(tensors, dims, strict=True) if d == 0)
    six = [t if d == 0 else t.unsqueeze(0) for t, d in zip(tensors, dims, strict=True)]
    if six[0].device.type == "cpu":
        six = [t.double() for t in six]
    for i in (1, 3, 5):
        six[i] = six[i].expand(batch, -1)
    six[0] = 0.5 * (six[0] + six[0].mT)
    data = _Batch(*six)
    answer, done = _the_fast_way(data, engine, given, max_iter)
    if answer is not None and bool(done.all()):
        return answer
    return _the_general_way(data, answer, done, policy, given)


def _the_fast_way(
    data: _Batch, engine: str, given: torch.dtype, max_iter: int
) -> tuple[Answer | None, Bool[Tensor, " b"]]:
    """Answers by proposal and reduction, and for which samples they stand."""
    eps = torch.finfo(given).eps
    q = data.h.shape[1]
    form = to_least_distance(data.Q, data.q, data.A, data.b, data.G, data.h, eps)
    done = form.ok
    if not bool(done.any()):
        return None, done
    active, iterations, ended = _propose(data, form, engine, max_iter)
    done = done & ended
    reduced, independent = factor_active(form, active, eps)
    p = data.A.shape[1]
    r1, r2 = -data.q, torch.cat([data.b, data.h], 1) if p else data.h
    x, nu = reduced.solve(r1.unsqueeze(2), r2.unsqueeze(2))
    u, nu = x.squeeze(2), nu.squeeze(2)
    # One refinement with the matrices as they came: the residual is then at rounding, whatever the reduction lost.
    pull, Gu = product(data.Q, u), product(data.G, u)
    nu_G = nu[:, p:] if p else nu
    force = transposed_product(data.G, nu_G)
    left, slack = -(pull + data.q + force), data.h - Gu
    gap = slack
    if p:
        left = left - transposed_product(data.A, nu[:, :p])
        gap = torch.cat([data.b - product(data.A, u), slack], 1)
    dx, dnu = reduced.solve(left.unsqueeze(2), gap.unsqueeze(2))
    dx, dnu = dx.squeeze(2), dnu.squeeze(2)
    size, change = u.abs().amax(1), dx.abs().amax(1)
    done = done & independent & (change <= 1e-6 * size.clamp_min(1e-300))
    u, nu = u + dx, nu + dnu
    if q:
        # Multipliers and slacks in units of what is at work: both must be plainly on their side.
        forces = torch.maximum(torch.maximum(pull.abs().amax(1), data.q.abs().amax(1)), force.abs().amax(1))
        length = data.G.abs().amax(2)
        room = torch.where(active, (nu[:, p:] if p else nu) * length, slack * (forces / size).unsqueeze(1) / length)
        done = done & (room > _ROOM * forces.unsqueeze(1)).all(1)
    keep = torch.cat([torch.ones_like(data.b, dtype=torch.bool), active], 1) if p else active
    zero = torch.zeros_like(iterations)
    never = torch.zeros_like(done)
    answer = Answer(
        u.to(given), nu.to(given), keep, never, ~never, zero, zero, iterations, change / size.clamp_min(1e-300), never,
        Factors(reduced, zero[:0], None, keep),
    )  # fmt: skip
    return answer, done


def _propose(data: _Batch, form, engine: str, max_iter: int) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[no-untyped-def]
    """Which inequalities an engine takes for active, its steps, and whether it got to an end."""
    b, q = data.h.shape
    ok = form.ok
    steps = torch.zeros(b, dtype=torch.int64, device=ok.device)
    if not q:
        return torch.zeros_like(data.h, dtype=torch.bool), steps, torch.ones_like(ok)
    everyone = bool(ok.all())
    chosen = torch.arange(b, device=ok.device) if everyone else ok.nonzero().squeeze(1)
    if engine == "daqp":
        P, d = form.P, form.d
        if not everyone:
            P, d = P if P.shape[0] == 1 else P[chosen], d[chosen]
        found = least_distance(P.cpu(), d.cpu())
        active, count, end = found.lam > 0, found.iterations, found.status
    else:
        point = solve_quadratic(data.program(None if everyone else chosen), max_iter=max_iter)
        active, count, end = point.z > point.s, point.iterations, point.status
    active, count = active.to(ok.device), count.to(ok.device)
    solved = (end == Status.CONVERGED).to(ok.device)
    if everyone:
        return active, count, solved
    whole = torch.zeros_like(data.h, dtype=torch.bool)
    return (
        whole.index_copy(0, chosen, active),
        steps.index_copy(0, chosen, count),
        torch.zeros_like(ok).index_copy(0, chosen, solved),
    )


def _the_general_way(
    data: _Batch, answer: Answer | None, done: Bool[Tensor, " b"], policy: Implicit, given: torch.dtype
) -> Answer:
    """Solve what is left as the generic node would, and put both together."""
    b, n = data.q.shape
    p, r = data.A.shape[1], data.A.shape[1] + data.G.shape[1]
    slow = (~done).nonzero().squeeze(1)
    program = data.program(slow)
    parts = (program.Q, program.q, program.A, program.b, program.G, program.h)
    finite = torch.stack([part.isfinite().flatten(1).all(1) for part in parts]).all(0)
    benign = torch.eye(n, dtype=data.q.dtype, device=data.q.device)
    Q = torch.where(finite[:, None, None], program.Q, benign)
    rest = [torch.where(finite.reshape(-1, *(1,) * (part.dim() - 1)), part, 0.0) for part in parts[1:]]
    program = Program(Q, *rest)
    convex, indefinite = _convexified(program, torch.finfo(given).eps)
    found = solve_quadratic(convex)
    status = torch.where(indefinite, int(Status.STALLED), found.status)
    status = torch.where(finite, status, int(Status.NONFINITE))
    solved = status == Status.CONVERGED
    u = torch.where(found.u.isfinite().all(1, keepdim=True) & ~indefinite[:, None], found.u, 0.0).to(given)
    values = tuple(part.to(given) for part in (program.Q, *rest))
    problem = declared(p, r - p)
    instance = Instance(problem, values, (0,) * 6, u.shape[1:], len(slow), p, r - p)
    hint = -torch.cat([found.y, found.z], 1).nan_to_num(0.0, 0.0, 0.0).to(given)
    active = find_active_set(instance, u, hint, policy.activity_tol)
    general = linearise(instance, u, active.lam, active.state, ~solved, policy, broken=~finite)
    shown = torch.where(finite[:, None], u, float("nan"))
    if answer is None:
        fresh = data.q.new_zeros(b, n).to(given)
        zero, never = torch.zeros(b, dtype=torch.int64, device=fresh.device), torch.zeros_like(done)
        answer = Answer(
            fresh, fresh.new_zeros(b, r), fresh.new_zeros(b, r, dtype=torch.bool), never, never, zero, zero, zero,
            fresh.new_zeros(b), never, Factors(None, slow, None, fresh.new_zeros(b, r, dtype=torch.bool)),
        )  # fmt: skip

    def put(old: Tensor, new: Tensor) -> Tensor:
        return old.index_copy(0, slow, new.to(old.dtype))

    keep = put(answer.keep, general.keep)
    return Answer(
        u=put(answer.u, shown),
        nu=put(answer.nu, torch.where(general.keep & ~general.dead[:, None], -active.lam, 0.0)),
        keep=keep,
        dead=put(answer.dead, general.dead),
        regular=put(answer.regular, general.regular),
        flags=put(answer.flags, _plain(general.flags)),
        status=put(answer.status, status),
        iterations=put(answer.iterations, found.iterations),
        residual=put(answer.residual.to(given), torch.where(finite, active.residual, torch.inf)),
        indefinite=put(answer.indefinite, indefinite),
        factors=Factors(answer.factors.fast, slow, general, keep),
    )


def _plain(flags: Int[Tensor, " b"]) -> Int[Tensor, " b"]:
    """Of a sample without an answer only that: what holds at a point that solves nothing is no news."""
    without = (flags & int(Flag.UNCONVERGED)) != 0
    return torch.where(without, flags & (int(Flag.UNCONVERGED) | int(Flag.NONFINITE)), flags)


def _convexified(program: Program, eps: float) -> tuple[Program, Bool[Tensor, " b"]]:
    """The same programs with a Q that is positive semidefinite, where adding `weight |Au - b|^2` makes it so.

    Also, where it does not: a program that is not convex even among the u with Au = b.
    """
    Q, tolerance = program.Q, 100 * program.Q.shape[1] * eps
    values = torch.linalg.eigvalsh(Q)
    negative = values[:, 0] < -tolerance * values.abs().amax(1)
    if not bool(negative.any()) or not program.A.shape[1]:
        return program, negative
    square = program.A.mT @ program.A
    weight = 1e3 * Q.abs().amax((1, 2)) / square.abs().amax((1, 2)).clamp_min(1e-300)
    weight = torch.where(negative, weight, 0.0)
    lifted = Q + weight[:, None, None] * square
    values = torch.linalg.eigvalsh(lifted)
    still = negative & (values[:, 0] < -tolerance * values.abs().amax(1))
    lifted = torch.where((negative & ~still)[:, None, None], lifted, Q)
    shift = torch.where((negative & ~still)[:, None], weight[:, None] * transposed_product(program.A, program.b), 0.0)
    return Program(lifted, program.q - shift, program.A, program.b, program.G, program.h), still
