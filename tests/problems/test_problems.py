"""Every test problem is what it says it is: shapes, published solutions, regularity, finite derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from problems import GROUPS, KINDS, PROBLEMS, TestProblem, select
from problems.verify import Array, Calculus, examine, good

every_problem = pytest.mark.parametrize("given", PROBLEMS.values(), ids=PROBLEMS.keys())
published = [(given, given.y.numpy()) for given in PROBLEMS.values() if given.y is not None]
every_published = pytest.mark.parametrize(("given", "y"), published, ids=[given.name for given, _ in published])


def functions(given: TestProblem) -> list[tuple[str, tuple[int, ...]]]:
    """The functions that the problem has, and the shape each must return."""
    shapes = {"objective": (), "equality": (given.p,), "inequality": (given.q,)}
    return [(which, shape) for which, shape in shapes.items() if getattr(given, which) is not None]


@every_problem
def test_shapes_are_the_declared_ones(given: TestProblem) -> None:
    assert given.x.dtype == given.start.dtype == torch.float64
    assert given.x.ndim == 2 and given.x.shape[0] >= 1
    assert (given.p > 0) == (given.equality is not None)
    assert (given.q > 0) == (given.inequality is not None)
    assert given.y is None or given.y.shape == given.start.shape
    for which, shape in functions(given):
        batched = torch.vmap(getattr(given, which))(given.x, given.starts)
        assert batched.shape == (given.x.shape[0], *shape)
        assert batched.dtype == torch.float64


@every_problem
def test_the_library_takes_the_functions_as_they_are(given: TestProblem) -> None:
    problem = given.problem
    functions = (problem.objective, problem.equality, problem.inequality)
    assert functions == (given.objective, given.equality, given.inequality)


@every_problem
def test_float32_is_kept(given: TestProblem) -> None:
    for which, shape in functions(given):
        value = getattr(given, which)(given.x[0].float(), given.start.float())
        assert value.dtype == torch.float32 and value.shape == shape


@every_problem
def test_batched_derivatives_are_finite_at_the_start_and_agree_with_one_sample(given: TestProblem) -> None:
    for which, _ in functions(given):
        derivative = torch.func.jacrev(getattr(given, which), argnums=(0, 1))
        by_x, by_u = torch.vmap(derivative)(given.x, given.starts)
        assert by_x.isfinite().all() and by_u.isfinite().all()
        alone = derivative(given.x[0], given.start)
        torch.testing.assert_close((by_x[0], by_u[0]), alone, rtol=1e-12, atol=1e-12 * float(1 + alone[1].abs().max()))


@every_problem
def test_no_parameter_is_idle(given: TestProblem) -> None:
    point = given.start if given.y is None else given.y
    used = torch.zeros(given.n, dtype=torch.bool)
    for which, _ in functions(given):
        # A weight is idle where its term vanishes: look beside the start too.
        for at in (point, given.start + 0.01 * torch.arange(1, given.m + 1)):
            by_x = torch.func.jacrev(getattr(given, which))(given.x[0], at)
            used |= (by_x.reshape(-1, given.n) != 0).any(dim=0)
    assert used.all()


@every_published
def test_published_solution_is_feasible_and_has_the_published_value(given: TestProblem, y: Array) -> None:
    calculus = Calculus(given, given.x[0])
    for which, violation in (("equality", np.abs), ("inequality", lambda g: g)):
        slope = 1 + np.abs(calculus.call(which, y, 1)).max(axis=1, initial=0.0)
        assert (violation(calculus.call(which, y)) <= 1e-8 * slope * (1 + np.abs(y).max())).all()
    if given.f is not None:
        assert abs(calculus.call("objective", y) - given.f) <= 1e-6 * max(1.0, abs(given.f))


@every_published
def test_published_solution_is_as_regular_as_declared(given: TestProblem, y: Array) -> None:
    calculus = Calculus(given, given.x[0])
    report = examine(calculus, "published", y)
    if given.kind in ("regular", "weak", "singular"):
        assert good(report)
        assert report.kind(given) == given.kind
    if given.kind == "regular":
        np.testing.assert_allclose(report.y, y, rtol=1e-7, atol=1e-9 * (1 + np.abs(report.y).max()))
    if given.kind == "dependent":
        there = examine(calculus, "published", y, moves=0)
        assert there.rank < given.p + there.active or not good(there)
    if given.kind == "feasibility":
        assert report.rank == given.p + report.active


def test_selectors_split_the_library() -> None:
    assert sorted(given.name for kind in KINDS for given in select(kind=kind)) == sorted(PROBLEMS)
    assert sorted(given.name for group in GROUPS for given in select(group=group)) == sorted(PROBLEMS)
    assert select(kind=("weak", "dependent")) == [g for g in PROBLEMS.values() if g.kind in ("weak", "dependent")]
    assert all(given.m <= 3 and given.p + given.q > 0 for given in select(constrained=True, largest=3))
