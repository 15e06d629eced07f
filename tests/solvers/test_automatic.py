from __future__ import annotations

import pytest
import torch

import tacit
from problems import PROBLEMS, TestProblem, select
from solvers.cases import SIMPLEX, bind, doubles, onto_simplex
from tacit.problem import Instance, Problem, Status
from tacit.solvers import Automatic, default_solver

# Elsewhere or nowhere, and known: from these starts the search ends in another local minimum than the published one.
ELSEWHERE = {"hs2", "hs16", "hs20", "hs55"}
# Not found within the steps allowed: there are no multipliers.
NOT_FOUND = {"hs13", "touching_balls"}
CERTAIN = ("regular", "weak", "dependent", "feasibility")
UNIQUE = [given for given in select(kind=CERTAIN) if given.y is not None and given.name not in ELSEWHERE | NOT_FOUND]
# Feasible sets of more than one point: the answer is any of them.
UNIQUE = [given for given in UNIQUE if given.objective is not None or given.p >= given.m]
SOME = UNIQUE[::10]


def solve(given: TestProblem, dtype: torch.dtype = torch.float64) -> tuple[Instance, object]:
    x, start = given.x.to(dtype), given.starts.to(dtype)
    instance = bind(given.problem, x, start)
    return instance, default_solver(instance).solve(instance, start)


def check(given: TestProblem) -> None:
    _, found = solve(given)
    assert (found.status == Status.CONVERGED).all()
    size = torch.maximum(given.y.abs(), 1e-3 * given.y.abs().max().clamp(min=1e-3))
    assert ((found.u[0] - given.y).abs() / size).max() < 1e-6


@pytest.mark.parametrize("given", SOME, ids=[given.name for given in SOME])
def test_published_solutions_are_reached_from_published_starts(given: TestProblem) -> None:
    check(given)


@pytest.mark.slow
@pytest.mark.parametrize("given", UNIQUE, ids=[given.name for given in UNIQUE])
def test_every_published_solution_is_reached(given: TestProblem) -> None:
    check(given)


VALUED = [given for given in PROBLEMS.values() if given.y is None and given.f is not None]


@pytest.mark.slow
@pytest.mark.parametrize("given", VALUED, ids=[given.name for given in VALUED])
def test_every_published_value_is_reached_where_only_that_is_known(given: TestProblem) -> None:
    instance, found = solve(given)
    assert (found.status == Status.CONVERGED).all()
    assert abs(instance.objective(found.u)[0] - given.f) <= max(1e-5 * abs(given.f), 1e-12)  # printed with six digits


@pytest.mark.slow
@pytest.mark.parametrize("given", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_is_called_converged_is_feasible_and_stationary(given: TestProblem) -> None:
    instance, found = solve(given)
    done = found.status == Status.CONVERGED
    rows, slope = instance.rows(found.u), instance.jacobian(found.u).abs().amax(-1)
    violation = torch.cat([rows[:, : given.p].abs(), rows[:, given.p :].clamp(min=0.0)], 1)
    size = found.u.abs().amax(1, keepdim=True).clamp(min=1.0)
    assert (violation[done] <= 1e-8 * (slope * size)[done]).all()
    assert (found.residual[done] <= 1e-9).all()


UNSOLVABLE = select(kind="no-solution")


@pytest.mark.slow
@pytest.mark.parametrize("given", UNSOLVABLE, ids=[given.name for given in UNSOLVABLE])
def test_what_has_no_solution_is_never_called_converged(given: TestProblem) -> None:
    _, found = solve(given)
    assert (found.status != Status.CONVERGED).all()


def test_the_last_answer_is_a_start_that_costs_a_few_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 5, generator=generator, dtype=torch.float64)
    first = Automatic().solve(bind(SIMPLEX, x, 0 * x), 0 * x)
    near = x + 1e-3
    second = Automatic().solve(bind(SIMPLEX, near, first.u), first.u)
    assert (second.status == Status.CONVERGED).all() and (second.iterations <= 8).all()
    torch.testing.assert_close(second.u, onto_simplex(near), rtol=1e-12, atol=1e-12)


def test_a_start_at_a_maximum_or_a_saddle_is_left() -> None:
    problem = Problem(
        objective=lambda x, u: -x * u[0] ** 2 + u[1] ** 2, inequality=lambda x, u: torch.cat([u - 1, -1 - u])
    )
    x, start = torch.ones(1, dtype=torch.float64), doubles((0.0, 0.0))
    found = Automatic().solve(bind(problem, x, start), start)
    assert found.status.item() != Status.CONVERGED or found.u[0, 0].abs().item() > 0.99


def test_a_feasible_start_of_a_feasibility_problem_stays() -> None:
    problem = Problem(objective=None, inequality=lambda x, u: u.square().sum()[None] - x)
    x, start = torch.ones(2, dtype=torch.float64), doubles((0.3, 0.4), (3.0, 4.0))
    found = Automatic().solve(bind(problem, x, start), start)
    assert found.status.tolist() == [Status.CONVERGED] * 2
    torch.testing.assert_close(found.u, doubles((0.3, 0.4), (0.6, 0.8)), rtol=1e-9, atol=1e-9)


def test_mixed_verdicts_do_not_mix() -> None:
    problem = Problem(
        objective=lambda x, u: x[0] * u.sum() + 0.5 * x[1] * u.square().sum(),
        inequality=lambda x, u: torch.stack([u[0] - 1, x[2] - u[0]]),
    )
    x = doubles((1.0, 1.0, -5.0), (1.0, 0.0, -5.0), (0.0, 1.0, 2.0), (float("nan"), 1.0, -5.0), (-1.0, 1.0, -5.0))
    start = torch.zeros(5, 2, dtype=torch.float64)
    found = Automatic().solve(bind(problem, x, start), start)
    expected = [Status.CONVERGED, Status.UNBOUNDED, Status.INFEASIBLE, Status.NONFINITE, Status.CONVERGED]
    assert found.status.tolist() == expected
    torch.testing.assert_close(found.u[[0, 4]], doubles((-1.0, -1.0), (1.0, 1.0)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["hs57", "nist_eckerle4_far"])
def test_a_level_region_far_away_is_left_for_the_minimum(name: str):
    given = PROBLEMS[name]
    found = tacit.solve(given.problem, given.x[:1], start=given.starts[:1], on_failure="raise")
    torch.testing.assert_close(found.y[0], given.y, rtol=1e-6, atol=1e-6)


def test_many_unknowns_need_no_matrix():
    weights = torch.linspace(1, 100, 20_000, dtype=torch.float64)
    problem = Problem(objective=lambda x, u: (weights * (u - x).square()).sum() + torch.cosh(u / 10).sum())
    x = torch.sin(torch.arange(20_000, dtype=torch.float64))[None]
    found = tacit.solve(problem, x, start=torch.zeros_like(x), on_failure="raise")  # a Hessian would take 3 GB
    slope = 2 * weights * (found.y - x) + torch.sinh(found.y / 10) / 10
    assert slope.abs().max() < 1e-6


def test_a_start_on_top_of_a_level_hill_is_left():
    problem = Problem(objective=lambda x, u: ((u - x) ** 6 - (u - x) ** 4).sum())
    x = torch.tensor([[0.3]], dtype=torch.float64)
    found = tacit.solve(problem, x, start=x, on_failure="raise")
    torch.testing.assert_close((found.y - x).square(), torch.full_like(x, 2 / 3))
