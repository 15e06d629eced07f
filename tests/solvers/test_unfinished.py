"""A search cut short: the status says so, a warning names the samples, and on request it is an error."""

from __future__ import annotations

import time
import warnings

import pytest
import torch

import tacit
from problems import PROBLEMS, TestProblem, select
from tacit.errors import ConvergenceError, SolverWarning
from tacit.problem import Status
from tacit.solvers import Automatic, InteriorPoint, Newton

# Thirty problems that no method can solve in one step: their optimality conditions are far from linear.
CUT_SHORT = [
    PROBLEMS[name]
    for name in (
        *(
            "hs1",
            "hs6",
            "hs7",
            "hs8",
            "hs10",
            "hs11",
            "hs12",
            "hs14",
            "hs15",
            "hs26",
            "hs27",
            "hs29",
            "hs30",
            "hs33",
            "hs34",
        ),
        *(
            "hs39",
            "hs40",
            "hs43",
            "hs46",
            "hs47",
            "hs56",
            "hs61",
            "hs64",
            "hs65",
            "hs66",
            "hs71",
            "hs77",
            "hs78",
            "hs79",
        ),
        "mgh_biggs_exp6",
    )
]


def test_there_are_thirty():
    assert len(CUT_SHORT) == 30


@pytest.mark.parametrize("given", CUT_SHORT, ids=[given.name for given in CUT_SHORT])
def test_one_step_gives_a_status_and_a_warning_and_raises_when_asked(given: TestProblem):
    one_step = (InteriorPoint if given.p + given.q else Newton)(max_iter=1)
    x, start = given.x[:1], given.starts[:1]
    with pytest.warns(SolverWarning, match="MAX_ITERATIONS|STALLED|INFEASIBLE"):
        found = tacit.solve(given.problem, x, start=start, solver=one_step)
    assert found.status.item() in (Status.MAX_ITERATIONS, Status.STALLED, Status.INFEASIBLE)
    assert found.iterations.item() == 1
    with pytest.raises(ConvergenceError):
        tacit.solve(given.problem, x, start=start, solver=one_step, on_failure="raise")
    leaf = x.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = tacit.argmin(given.problem, leaf, start=start, solver=one_step)
        (grad,) = torch.autograd.grad(y.sum(), leaf)
    assert bool((grad == 0).all())


@pytest.mark.parametrize("given", CUT_SHORT[:3], ids=[given.name for given in CUT_SHORT[:3]])
def test_the_default_solver_is_cut_short_too(given: TestProblem):
    found = tacit.solve(
        given.problem, given.x[:1], start=given.starts[:1], solver=Automatic(max_iter=1), on_failure="ignore"
    )
    assert found.status.item() != Status.CONVERGED


NONE = select(kind="no-solution")


@pytest.mark.slow
@pytest.mark.parametrize("given", NONE, ids=[given.name for given in NONE])
def test_what_has_no_solution_is_recognised_in_bounded_time(given: TestProblem):
    begin = time.process_time()
    found = tacit.solve(given.problem, given.x, start=given.starts, on_failure="ignore")
    assert bool((found.status != Status.CONVERGED).all())
    assert time.process_time() - begin < 60
