from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, SIMPLEX, bind, doubles, onto_simplex
from tacit.problem import Problem, Status
from tacit.solvers import InteriorPoint

generator = torch.Generator().manual_seed(1)


def test_projections_are_exact_with_multipliers_of_the_right_sign() -> None:
    x = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    found = InteriorPoint().solve(bind(BALL, x, 0 * x), 0 * x)
    size = x.norm(dim=1, keepdim=True)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, x / size.clamp(min=1.0), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.lam, -((size - 1) / 2).clamp(min=0.0), rtol=1e-9, atol=1e-9)


def test_equalities_and_bounds_together() -> None:
    x = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    start = torch.full_like(x, 1 / 6)
    found = InteriorPoint().solve(bind(SIMPLEX, x, start), start)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, onto_simplex(x), rtol=1e-12, atol=1e-12)
    assert (found.lam[:, 1:] <= 0).all()


def test_single_precision_is_kept_and_exhausted() -> None:
    x = torch.randn(20, 6, generator=generator)
    found = InteriorPoint().solve(bind(SIMPLEX, x, 0 * x), 0 * x)
    assert found.u.dtype == torch.float32 and (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, onto_simplex(x), rtol=1e-5, atol=1e-5)


INDEFINITE = {
    # name: (objective, equality, inequality, start, answer); H is indefinite on the way or at the answer.
    "saddle on a sphere": (
        lambda x, u: u[0] ** 2 - u[1] ** 2 + x * u[1],
        lambda x, u: u.square().sum()[None] - 1,
        None,
        (0.5, -0.5),
        (0.0, -1.0),
    ),
    "concave in a box": (
        lambda x, u: -(u[0] ** 2) - 2 * u[1] ** 2 + 0.1 * x * u.sum(),
        None,
        lambda x, u: torch.cat([u - 1, -1 - u]),
        (-0.3, -0.2),
        (-1.0, -1.0),
    ),
    "product on a line": (
        lambda x, u: -u[0] * u[1],
        lambda x, u: (u[0] + u[1] - 2 * x)[None],
        None,
        (1.7, 0.4),
        (1.0, 1.0),
    ),
    "leading eigenvector": (
        lambda x, u: -(x * (torch.arange(1, 4, dtype=u.dtype) * u * u).sum()),
        lambda x, u: u.square().sum()[None] - 1,
        None,
        (0.5, 0.5, 0.6),
        (0.0, 0.0, 1.0),
    ),
    "volume of a box": (
        lambda x, u: -u[0] * u[1] * u[2],
        None,
        lambda x, u: torch.cat([(u[0] + 2 * u[1] + 2 * u[2] - 72 * x)[None], -u, u - 42]),
        (10.0, 10.0, 10.0),
        (24.0, 12.0, 12.0),
    ),
}


@pytest.mark.parametrize("name", INDEFINITE)
def test_an_indefinite_hessian_does_not_mislead(name: str) -> None:
    objective, equality, inequality, start, answer = INDEFINITE[name]
    x, u = torch.ones(1, dtype=torch.float64), doubles(start)
    found = InteriorPoint().solve(bind(Problem(objective, equality, inequality), x, u), u)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles(answer), rtol=1e-9, atol=1e-9)


def test_linear_programs_end_in_a_vertex() -> None:
    problem = Problem(
        objective=lambda c, u: (c * u).sum(),
        inequality=lambda c, u: torch.cat([-u, (u[0] + 2 * u[1] - 4)[None], (3 * u[0] + u[1] - 6)[None]]),
    )
    c = doubles((-1.0, -1.0), (1.0, 1.0), (-5.0, -1.0), (0.3, -1.0))
    found = InteriorPoint().solve(bind(problem, c, 0 * c + 0.5), 0 * c + 0.5)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, doubles((1.6, 1.2), (0.0, 0.0), (2.0, 0.0), (0.0, 2.0)), rtol=0, atol=1e-12)


def test_a_row_stated_twice_changes_nothing() -> None:
    once = Problem(lambda x, u: (u - x).square().sum(), lambda x, u: torch.stack([u.sum() - 1]))
    twice = Problem(lambda x, u: (u - x).square().sum(), lambda x, u: torch.stack([u.sum() - 1, 2 * u.sum() - 2]))
    x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    one, two = (InteriorPoint().solve(bind(p, x, 0 * x), 0 * x) for p in (once, twice))
    assert (two.status == Status.CONVERGED).all()
    torch.testing.assert_close(two.u, one.u, rtol=1e-9, atol=1e-9)


def test_a_weakly_active_row_is_no_trouble() -> None:
    problem = Problem(objective=lambda x, u: 0.5 * (u - x).square().sum(), inequality=lambda x, u: -u)
    x = doubles((0.0, 1.0))
    found = InteriorPoint().solve(bind(problem, x, x + 1), x + 1)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, x, rtol=0, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-12, 1e12])
@pytest.mark.parametrize("part", ["objective", "rows"])
def test_units_do_not_matter(factor: float, part: str) -> None:
    of_f, of_g = (factor, 1.0) if part == "objective" else (1.0, factor)
    problem = Problem(lambda x, u: of_f * BALL.objective(x, u), None, lambda x, u: of_g * BALL.inequality(x, u))
    x = doubles((3.0, 4.0), (0.1, 0.2))
    found = InteriorPoint().solve(bind(problem, x, 0 * x), 0 * x)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, doubles((0.6, 0.8), (0.1, 0.2)), rtol=1e-9, atol=1e-9)


def test_contradicting_rows_are_infeasible() -> None:
    problem = Problem(lambda x, u: u.square().sum(), None, lambda x, u: torch.stack([1 - u[0], u[0] + x[0]]))
    x = doubles((1.0, 0.0), (-3.0, 0.0))
    found = InteriorPoint().solve(bind(problem, x, 0 * x), 0 * x)
    assert found.status.tolist() == [Status.INFEASIBLE, Status.CONVERGED]


def test_a_descending_ray_is_unbounded() -> None:
    problem = Problem(lambda x, u: -(x * u).sum(), None, lambda x, u: torch.stack([-u[0], u[1] - 1]))
    x = doubles((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0))
    found = InteriorPoint().solve(bind(problem, x, 0 * x), 0 * x)
    assert found.status.tolist() == [Status.UNBOUNDED, Status.CONVERGED, Status.UNBOUNDED]


@pytest.mark.parametrize("spoiler", [float("nan"), float("inf"), -float("inf")])
def test_a_spoiled_element_leaves_its_neighbours_alone(spoiler: float) -> None:
    x = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    clean = InteriorPoint().solve(bind(SIMPLEX, x, 0 * x), 0 * x)
    spoiled = x.clone()
    spoiled[2, 1] = spoiler
    found = InteriorPoint().solve(bind(SIMPLEX, spoiled, 0 * x), 0 * x)
    others = [0, 1, 3, 4, 5]
    assert (found.u[others] - clean.u[others]).abs().max() <= 1e-12
    assert found.status[2].item() == Status.NONFINITE
    assert (found.status[others] == Status.CONVERGED).all()


def test_one_step_does_not_pass_for_an_answer() -> None:
    x = doubles((3.0, 4.0, 0.0, 1.0))
    assert InteriorPoint(max_iter=1).solve(bind(SIMPLEX, x, 0 * x), 0 * x).status.item() == Status.MAX_ITERATIONS


def test_an_empty_batch_is_no_trouble() -> None:
    x = torch.zeros(0, 3, dtype=torch.float64)
    assert InteriorPoint().solve(bind(SIMPLEX, x, x), x).u.shape == (0, 3)
