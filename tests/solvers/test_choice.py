from __future__ import annotations

from solvers.cases import BALL, VALLEY, bind, doubles
from tacit.problem import Status
from tacit.solvers import Solver, default_solver


def test_the_default_solver_takes_problems_with_and_without_rows() -> None:
    for problem, x in ((BALL, doubles((3.0, 4.0))), (VALLEY, doubles((10.0, 1.0)))):
        instance = bind(problem, x, 0 * x)
        solver = default_solver(instance)
        assert isinstance(solver, Solver)
        assert solver.solve(instance, 0 * x).status.item() == Status.CONVERGED
