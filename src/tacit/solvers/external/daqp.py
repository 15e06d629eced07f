"""DAQP, a dual active-set method for small dense quadratic programs: one program at a time, a thread each.

It is asked in the coordinates in which the objective is a plain square, where it has nothing left to factor:

    minimise 1/2 |z|^2   subject to   M z <= d

Arnstrom, Bemporad and Axehill, "A dual active-set solver for embedded quadratic programming using recursive LDL'
updates" (2022); the package `daqp` is an optional extra.
"""

from __future__ import annotations

import importlib.util
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import MissingDependencyError
from tacit.problem import Instance, Status
from tacit.shapes import Float, Int, Tensor
from tacit.solvers.base import Found, Solver, check_count, check_positive, tolerance
from tacit.solvers.optimality import evaluate, residual

__all__ = ["DAQP", "LeastDistance", "is_installed", "least_distance"]

_STATUS = {-1: Status.INFEASIBLE, -3: Status.UNBOUNDED, -4: Status.MAX_ITERATIONS}
_EQUALITY = 5  # DAQP's word for a row that always holds
_WORTH_A_THREAD = 20_000  # numbers in a program, below which handing it to another thread costs more than it saves


@dataclass(frozen=True)
class LeastDistance:
    """Points, multipliers `z + M'lam = 0`, `lam >= 0`, iterations and status."""

    z: Float[Tensor, "b n"]
    lam: Float[Tensor, "b q"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]


def is_installed() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec("daqp") is not None


def least_distance(
    M: Float[Tensor, "c q n"], d: Float[Tensor, "b q"], max_iter: int = 10_000, threads: int | None = None
) -> LeastDistance:
    """Solve `minimise 1/2 |z|^2 subject to M z <= d`; M with one element is shared by all. Finite numbers, on the CPU.

    Raises:
        MissingDependencyError: the package is not installed.

    >>> M, d = torch.tensor([[[-1.0, 0.0]]], dtype=torch.float64), torch.tensor([[-2.0]], dtype=torch.float64)
    >>> least_distance(M, d).z
    tensor([[2., 0.]], dtype=torch.float64)
    """
    daqp = _package()
    import numpy

    b, (_, q, n) = len(d), M.shape
    rows, right = M.contiguous().numpy(), d.contiguous().numpy()
    eye, zero = numpy.eye(n), numpy.zeros(n)
    low, sense = numpy.full(q, -1e30), numpy.zeros(q, dtype=numpy.int32)
    z, lam = numpy.zeros((b, n)), numpy.zeros((b, q))
    shared = len(rows) == 1

    def one(i: int) -> tuple[int, int]:
        # Tolerances near rounding: a row that is missed here would have to be found again, at the cost of a factorisation.
        z[i], _, flag, info = daqp.solve(
            eye, zero, rows[0 if shared else i], right[i], low, sense, primal_tol=1e-11, iter_limit=max_iter
        )
        lam[i] = info["lam"]
        return flag, info["iterations"]

    ends = _for_each(one, b, q * n, threads)
    status = [int(Status.CONVERGED if flag > 0 else _STATUS.get(flag, Status.STALLED)) for flag, _ in ends]
    return LeastDistance(
        torch.from_numpy(z),
        torch.from_numpy(lam),
        torch.tensor([count for _, count in ends], dtype=torch.int64),
        torch.tensor(status, dtype=torch.int64),
    )


def _package() -> Any:
    try:
        import daqp
    except ImportError as error:
        raise MissingDependencyError(
            "the engine DAQP expects the package daqp, which is not installed. Run: pip install 'tacit[daqp]'"
        ) from error
    return daqp


def _for_each(one: Any, count: int, size: int, threads: int | None) -> list[Any]:
    """Call `one(i)` for every program; DAQP lets other threads run while it works."""
    threads = torch.get_num_threads() if threads is None else threads
    if threads < 2 or count < 2 or size < _WORTH_A_THREAD:
        return [one(i) for i in range(count)]
    share = -(-count // threads)
    parts = [range(begin, min(begin + share, count)) for begin in range(0, count, share)]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(itertools.chain.from_iterable(pool.map(lambda part: [one(i) for i in part], parts)))


@dataclass(frozen=True)
class DAQP(Solver):
    """For a declared problem that is a convex quadratic program: reads the matrices off the derivatives at the start.

    An element that turns out not to be quadratic is left at a point whose residual is large, and is called STALLED.

    Args:
        tol: scaled residual that counts as solved; None takes what the dtype allows.
        max_iter: active-set changes allowed.
        threads: programs solved at a time; None takes torch's number.

    Raises:
        MissingDependencyError: the package is not installed.

    >>> from tacit.problem import Problem
    >>> problem = Problem(objective=lambda x, u: (u - x).square().sum(), inequality=lambda x, u: u - 1)
    >>> x = torch.tensor([[3.0, 0.5]])
    >>> DAQP().solve(Instance.bind(problem, (x,), (0,), x), x).u
    tensor([[1.0000, 0.5000]])
    """

    tol: float | None = None
    max_iter: int = 10_000
    threads: int | None = None

    def __post_init__(self) -> None:
        check_positive(self, "tol", optional=True)
        check_count(self, "max_iter")
        if self.threads is not None:
            check_count(self, "threads")

    @torch.no_grad()
    def solve(self, instance: Instance, start: Float[Tensor, "b m"]) -> Found:
        """Solve every element by itself; one that is not finite is not attempted."""
        daqp = _package()
        import numpy

        b, m = start.shape
        at = evaluate(instance, start, start.new_zeros(b, instance.r))
        H, A = at.H, at.A
        q = at.f_Y - (H @ start[:, :, None]).squeeze(2)
        right = (A @ start[:, :, None]).squeeze(2) - at.rows
        parts = [part.double().cpu().contiguous().numpy() for part in (0.5 * (H + H.mT), q, A, right)]
        finite = [all(numpy.isfinite(part[i]).all() for part in parts) for i in range(b)]
        equality = numpy.arange(instance.r) < instance.p
        sense = numpy.where(equality, _EQUALITY, 0).astype(numpy.int32)
        u, lam = numpy.zeros((b, m)), numpy.zeros((b, instance.r))

        def one(i: int) -> tuple[int, int]:
            if not finite[i]:
                return int(Status.NONFINITE), 0
            H, q, A, right = (part[i] for part in parts)
            low = numpy.where(equality, right, -1e30)
            u[i], _, flag, info = daqp.solve(H, q, A, right, low, sense, primal_tol=1e-11, iter_limit=self.max_iter)
            lam[i] = -info["lam"]
            return int(Status.CONVERGED if flag > 0 else _STATUS.get(flag, Status.STALLED)), info["iterations"]

        ends = _for_each(one, b, m * (m + instance.r), self.threads)
        return self._judged(instance, start, torch.from_numpy(u), torch.from_numpy(lam), ends)

    def _judged(
        self, instance: Instance, start: Tensor, u: Tensor, lam: Tensor, ends: list[tuple[int, int]]
    ) -> Found:
        """The answers in the caller's dtype, with DAQP's word checked against the optimality conditions."""
        u, lam = u.to(start), lam.to(start)
        status = torch.tensor([end for end, _ in ends], dtype=torch.int64, device=start.device)
        solved = status == Status.CONVERGED
        u = torch.where(solved[:, None] & u.isfinite().all(1, keepdim=True), u, start)
        error = residual(evaluate(instance, u, lam))
        rough = solved & ~(error <= tolerance(self.tol, start.dtype))
        status = torch.where(rough, int(Status.STALLED), status)
        iterations = torch.tensor([count for _, count in ends], dtype=torch.int64, device=start.device)
        return Found(u, lam, error, iterations, status)
