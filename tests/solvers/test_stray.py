"""A plateau at infinity is no answer; a minimum far away is one."""

from __future__ import annotations

import torch

import tacit
from problems import PROBLEMS
from solvers.cases import bind, doubles
from tacit.problem import Problem, Status
from tacit.solvers import Newton
from tacit.solvers.base import Found
from tacit.solvers.stray import without_strays


def found_at(u: torch.Tensor) -> Found:
    blank = torch.zeros(len(u), dtype=torch.int64)
    return Found(u, None, u.new_zeros(len(u)), blank, blank)


def test_a_far_minimum_stays_converged_and_a_far_level_region_does_not():
    x, start = doubles((1e10, 1e10)), doubles((0.0, 0.0))
    minimum = Problem(objective=lambda x, u: (u - x).square().sum())
    assert without_strays(bind(minimum, x, start), start, found_at(x)).status == Status.CONVERGED
    level = Problem(objective=lambda x, u: (u[0] - x[0]).square() + torch.exp(-u[1].square()))
    assert without_strays(bind(level, x, start), start, found_at(x)).status == Status.STALLED


def test_a_level_region_nearby_is_left_to_the_solver():
    problem = Problem(objective=lambda x, u: (u[0] - x[0]).square() + 0 * u[1])
    x, start = doubles((1.0,)), doubles((0.0, 0.0))
    assert without_strays(bind(problem, x, start), start, found_at(doubles((1.0, 0.0)))).status == Status.CONVERGED


def test_a_fit_that_runs_off_is_not_called_converged():
    given = PROBLEMS["nist_eckerle4_far"]
    start = given.starts[:1]
    far = tacit.solve(given.problem, given.x[:1], start=start, solver=Newton(), on_failure="ignore")
    near = bool((far.y.abs() < 1e6).all())
    assert near or far.status != Status.CONVERGED
