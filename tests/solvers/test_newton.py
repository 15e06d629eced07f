from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, VALLEY, bind, doubles
from tacit.errors import SolverError
from tacit.problem import Problem, Status
from tacit.solvers import Newton
from tacit.solvers.newton import trust_region_step


@pytest.mark.parametrize("scaled", [False, True])
def test_curved_valleys_are_followed_to_rounding(scaled: bool) -> None:
    x = doubles((100.0, 1.0), (1.0, -2.0), (1e4, 0.5))
    start = doubles((-1.2, 1.0)).expand(3, 2)
    found = Newton(scaled=scaled).solve(bind(VALLEY, x, start), start)
    assert found.status.tolist() == [Status.CONVERGED] * 3
    torch.testing.assert_close(found.u, torch.stack([x[:, 1], x[:, 1] ** 2], 1), rtol=1e-12, atol=1e-12)


def test_a_saddle_is_left_along_negative_curvature() -> None:
    problem = Problem(objective=lambda x, u: x * (u[0] ** 2 - 1) ** 2 + u[1] ** 2)
    x, start = torch.ones(1, dtype=torch.float64), doubles((0.0, 0.0))
    found = Newton().solve(bind(problem, x, start), start)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u.abs(), doubles((1.0, 0.0)), rtol=0, atol=1e-12)


def test_a_flat_minimum_is_approached_as_far_as_digits_go() -> None:
    problem = Problem(objective=lambda x, u: (u - x).pow(4).sum())
    x = doubles((0.5,))
    found = Newton().solve(bind(problem, x, 0 * x), 0 * x)
    assert found.status.item() == Status.CONVERGED
    assert (found.u - x).abs().item() < 1e-6


def test_linear_and_cubic_objectives_are_unbounded() -> None:
    problem = Problem(objective=lambda x, u: torch.where(x > 0, u.pow(3).sum(), -u.sum()))
    x, start = doubles((1.0,), (-1.0,))[:, 0], doubles((-1.0,), (0.0,))
    found = Newton().solve(bind(problem, x, start), start)
    assert found.status.tolist() == [Status.UNBOUNDED] * 2


def test_an_infimum_that_is_not_attained_is_no_answer() -> None:
    problem = Problem(objective=lambda x, u: x * torch.exp(-u).sum())
    x, start = torch.ones(1, dtype=torch.float64), doubles((0.0,))
    assert Newton().solve(bind(problem, x, start), start).status.item() != Status.CONVERGED


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_the_unit_of_the_objective_does_not_matter(factor: float) -> None:
    problem = Problem(objective=lambda x, u: factor * VALLEY.objective(x, u))
    x, start = doubles((100.0, 1.0)), doubles((-1.2, 1.0))
    found = Newton().solve(bind(problem, x, start), start)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles((1.0, 1.0)), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("spoiler", [float("nan"), float("inf"), 1e300])
def test_a_spoiled_element_leaves_its_neighbours_alone(spoiler: float) -> None:
    x = doubles((100.0, 1.0), (50.0, 2.0), (10.0, 0.3))
    start = doubles((-1.2, 1.0)).repeat(3, 1)
    clean = Newton().solve(bind(VALLEY, x, start), start)
    x[1, 0] = spoiler
    found = Newton().solve(bind(VALLEY, x, start), start)
    assert (found.u[[0, 2]] - clean.u[[0, 2]]).abs().max() <= 1e-12
    assert found.status[[0, 2]].tolist() == [Status.CONVERGED] * 2
    if spoiler != 1e300:
        assert found.status[1].item() == Status.NONFINITE


def test_single_precision_is_kept_and_exhausted() -> None:
    x, start = torch.tensor([[100.0, 1.0]]), torch.tensor([[-1.2, 1.0]])
    found = Newton().solve(bind(VALLEY, x, start), start)
    assert found.u.dtype == torch.float32 and found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, torch.ones(1, 2), rtol=1e-5, atol=1e-5)


def test_one_step_does_not_pass_for_an_answer() -> None:
    x, start = doubles((100.0, 1.0)), doubles((-1.2, 1.0))
    assert Newton(max_iter=1).solve(bind(VALLEY, x, start), start).status.item() == Status.MAX_ITERATIONS


def test_constraints_are_refused() -> None:
    x = doubles((3.0, 4.0))
    with pytest.raises(SolverError, match="InteriorPoint"):
        Newton().solve(bind(BALL, x, x), x)


def test_an_empty_batch_is_no_trouble() -> None:
    x = torch.zeros(0, 2, dtype=torch.float64)
    assert Newton().solve(bind(VALLEY, x, x), x).u.shape == (0, 2)


def test_the_trust_region_step_minimises_the_model_in_the_ball() -> None:
    generator = torch.Generator().manual_seed(0)
    H = torch.randn(20, 4, 4, generator=generator, dtype=torch.float64)
    g = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    w, V = torch.linalg.eigh(H + H.mT)
    radius = torch.full((20,), 0.7, dtype=torch.float64)
    d, predicted = trust_region_step(w, V, g, radius)
    assert (d.norm(dim=1) <= 0.7 * (1 + 1e-9)).all()
    # No sampled point of the ball does better.
    points = torch.randn(20, 4000, 4, generator=generator, dtype=torch.float64)
    points = 0.7 * points / points.norm(dim=2, keepdim=True) * torch.rand(20, 4000, 1, generator=generator).double()
    values = (points @ g[:, :, None]).squeeze(2) + 0.5 * (points @ (H + H.mT) * points).sum(2)
    assert (-predicted <= values.amin(1) * (1 - 1e-3) + 1e-12).all()


def test_a_step_can_be_differentiated() -> None:
    x = doubles((100.0, 1.0)).requires_grad_()
    near = doubles((1.0, 1.0))
    y = Newton().step(bind(VALLEY, x, near), near)
    (slope,) = torch.autograd.grad(y[0, 1], x)
    torch.testing.assert_close(slope, doubles((0.0, 2.0)))
