"""The point of a polyhedron nearest to the origin, by DAQP: what a strictly convex program is in the right coordinates.

    minimise 1/2 |z|^2   subject to   M z <= d

There the engine has nothing left to factor, and a batch is prepared by torch all at once. DAQP lets other threads run
while it works, so large programs are shared out among them. (Arnstrom, Bemporad and Axehill, "A dual active-set solver
for embedded quadratic programming using recursive LDL' updates", 2022.)
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import MissingDependencyError
from tacit.problem import Status
from tacit.shapes import Float, Int, Tensor

__all__ = ["LeastDistance", "daqp_is_installed", "least_distance"]

_STATUS = {-1: Status.INFEASIBLE, -3: Status.UNBOUNDED, -4: Status.MAX_ITERATIONS}
_WORTH_A_THREAD = 20_000  # numbers in M, below which handing a program over costs more than it saves
# Tolerances near rounding: a row that is missed here would have to be found again, at the cost of a factorisation.
_SETTINGS = {"primal_tol": 1e-11}


@dataclass(frozen=True)
class LeastDistance:
    """Multipliers (`z + M'lam = 0`, `lam >= 0`), iterations and status."""

    lam: Float[Tensor, "b q"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]


@functools.cache
def daqp_is_installed() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec("daqp") is not None


def least_distance(
    M: Float[Tensor, "c q n"], d: Float[Tensor, "b q"], max_iter: int = 10_000, threads: int | None = None
) -> LeastDistance:
    """Solve `minimise 1/2 |z|^2 subject to M z <= d` in float64 on the CPU; everything is finite.

    Args:
        M: one matrix a sample, or one for all.
        threads: programs solved at a time; None takes torch's number.

    Raises:
        MissingDependencyError: the package is not installed.

    >>> M, d = torch.tensor([[[-1.0, 0.0]]], dtype=torch.float64), torch.tensor([[-2.0]], dtype=torch.float64)
    >>> least_distance(M, d).lam
    tensor([[2.]], dtype=torch.float64)
    """
    if not daqp_is_installed():
        raise MissingDependencyError(
            "the engine DAQP expects the package daqp, which is not installed. Run: pip install 'tacit[daqp]'"
        )
    import daqp
    import numpy

    b, (c, q, n) = len(d), M.shape
    rows, right = M.contiguous().numpy(), d.contiguous().numpy()
    eye, zero, low = numpy.eye(n), numpy.zeros(n), numpy.full(q, -1e30)
    sense = numpy.zeros(q, dtype=numpy.int32)
    lam, flags, counts = numpy.zeros((b, q)), [0] * b, [0] * b

    def one(i: int) -> None:
        M = rows[0 if c == 1 else i]
        _, _, flags[i], info = daqp.solve(eye, zero, M, right[i], low, sense, iter_limit=max_iter, **_SETTINGS)
        lam[i], counts[i] = info["lam"], info["iterations"]

    _for_each(one, b, q * n, threads)
    status = [0 if flag > 0 else int(_STATUS.get(flag, Status.STALLED)) for flag in flags]
    return LeastDistance(torch.from_numpy(lam), torch.tensor(counts), torch.tensor(status))


def _for_each(one: Callable[[int], Any], count: int, size: int, threads: int | None) -> None:
    threads = torch.get_num_threads() if threads is None else threads
    if threads < 2 or count < 2 or size < _WORTH_A_THREAD:
        for i in range(count):
            one(i)
        return
    with ThreadPoolExecutor(min(threads, count)) as pool:
        # A consumed iterator raises what a thread raised.
        list(itertools.chain(pool.map(one, range(count))))
