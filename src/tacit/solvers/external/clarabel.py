"""Clarabel, an interior point for convex cone programs; as a solver, for quadratic ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from tacit.problem import Status
from tacit.shapes import Float, Int, Tensor
from tacit.solvers.external._engine import Answer, QuadraticEngine, require

__all__ = ["Clarabel", "ConeAnswer", "Cones", "solve_cones"]

VERDICTS = {
    "Solved": Status.CONVERGED,
    "AlmostSolved": Status.CONVERGED,
    "PrimalInfeasible": Status.INFEASIBLE,
    "AlmostPrimalInfeasible": Status.INFEASIBLE,
    "DualInfeasible": Status.UNBOUNDED,
    "AlmostDualInfeasible": Status.UNBOUNDED,
    "MaxIterations": Status.MAX_ITERATIONS,
}


@dataclass(frozen=True)
class Clarabel(QuadraticEngine):
    """Clarabel for quadratic objectives and linear rows; `pip install tacit[clarabel]`."""

    def load(self) -> Any:
        return require("clarabel", "'tacit[clarabel]'", "Clarabel")

    def program(self, Q: Any, q: Any, A: Any, b: Any, G: Any, h: Any) -> Answer:
        numpy = require("numpy", "numpy", "Clarabel")
        cones = Cones(len(b), len(h))
        found = _run(Q, q, numpy.concatenate([A, G]), numpy.concatenate([b, h]), cones, {"max_iter": self.max_iter})
        verdict = VERDICTS.get(str(found.status), Status.STALLED)
        return Answer(numpy.array(found.x), -numpy.array(found.z), int(found.iterations), verdict)


@dataclass(frozen=True)
class Cones:
    """Where the slacks of a cone program live, in this order: sizes of the first two, sizes of each of the third kind.

    Attributes:
        zero: rows with s = 0.
        nonnegative: rows with s >= 0.
        second_order: for each cone its number of rows, `s_0 >= |s_1..|`.
        exponential: number of cones of three rows, `s_2 >= s_1 exp(s_0 / s_1)`, `s_1 > 0`, closed.
    """

    zero: int = 0
    nonnegative: int = 0
    second_order: tuple[int, ...] = ()
    exponential: int = 0

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return self.zero + self.nonnegative + sum(self.second_order) + 3 * self.exponential


@dataclass(frozen=True)
class ConeAnswer:
    """Points, multipliers (`P x + c + A'z = 0`, z in the dual cone), iterations and verdicts."""

    x: Float[Tensor, "b n"]
    z: Float[Tensor, "b m"]
    iterations: Int[Tensor, " b"]
    status: Int[Tensor, " b"]


def solve_cones(
    P: Float[Tensor, "b n n"],
    c: Float[Tensor, "b n"],
    A: Float[Tensor, "b m n"],
    b: Float[Tensor, "b m"],
    cones: Cones,
    max_iter: int = 200,
    threads: int = 1,
) -> ConeAnswer:
    """Minimise `x'Px/2 + c'x` subject to `A x + s = b`, s in the cones, sample by sample, in float64; all finite.

    Raises:
        MissingDependencyError: the package is not installed.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> solve_cones(one, -2 * one[0], one, one[0], Cones(nonnegative=1)).x.round(decimals=6)
    tensor([[1.]], dtype=torch.float64)
    """
    numpy = require("numpy", "numpy", "Clarabel")
    parts = [t.double().cpu().numpy() for t in (P, c, A, b)]
    # As close as it gets: the active rows are read off the answer.
    settings = {"max_iter": max_iter, "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}

    def one(i: int) -> Any:
        Pi, ci, Ai, bi = (part[i] for part in parts)
        return _run(Pi, ci, Ai, bi, cones, settings)

    if threads > 1 and len(c) > 1:
        with ThreadPoolExecutor(min(threads, len(c))) as pool:
            found = list(pool.map(one, range(len(c))))
    else:
        found = [one(i) for i in range(len(c))]

    def column(name: str, like: Tensor) -> Tensor:
        values = [numpy.array(getattr(f, name)) for f in found]
        return torch.as_tensor(numpy.array(values).reshape(like.shape), dtype=like.dtype, device=like.device)

    verdicts = [int(VERDICTS.get(str(f.status), Status.STALLED)) for f in found]
    return ConeAnswer(
        column("x", c),
        column("z", b),
        torch.tensor([int(f.iterations) for f in found], dtype=torch.int64, device=c.device),
        torch.tensor(verdicts, dtype=torch.int64, device=c.device),
    )


def _run(P: Any, c: Any, A: Any, b: Any, cones: Cones, options: dict[str, Any]) -> Any:
    """One program, numpy to Clarabel's own record."""
    numpy = require("numpy", "numpy", "Clarabel")
    sparse = require("scipy.sparse", "'tacit[clarabel]'", "Clarabel")
    clarabel = require("clarabel", "'tacit[clarabel]'", "Clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name, value in options.items():
        setattr(settings, name, value)
    kinds = [clarabel.ZeroConeT(cones.zero)] if cones.zero else []
    kinds += [clarabel.NonnegativeConeT(cones.nonnegative)] if cones.nonnegative else []
    kinds += [clarabel.SecondOrderConeT(k) for k in cones.second_order]
    kinds += [clarabel.ExponentialConeT() for _ in range(cones.exponential)]
    upper = sparse.csc_matrix(numpy.triu(P))
    return clarabel.DefaultSolver(upper, c, sparse.csc_matrix(A), b, kinds, settings).solve()
