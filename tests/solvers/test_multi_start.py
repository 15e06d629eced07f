from __future__ import annotations

import pytest
import torch

from solvers.cases import bind, doubles
from tacit.errors import OptionTypeError
from tacit.problem import Problem, Status
from tacit.solvers import MultiStart, Newton

WELLS = Problem(objective=lambda x, u: ((u.square() - 1).square() + x * u).sum())


def test_the_better_well_is_found() -> None:
    x, start = doubles((0.2,), (-0.2,)), doubles((0.9,), (-0.9,))
    found = MultiStart(spread=2.0).solve(bind(WELLS, x, start), start)
    assert (found.status == Status.CONVERGED).all()
    assert (found.u.sign() == -x.sign()).all()


def test_ties_go_to_the_minimum_nearest_the_start() -> None:
    x, start = doubles((0.0,), (0.0,)), doubles((0.4,), (-0.4,))
    found = MultiStart(solver=Newton(), starts=12, spread=2.0).solve(bind(WELLS, x, start), start)
    torch.testing.assert_close(found.u, doubles((1.0,), (-1.0,)), rtol=0, atol=1e-9)


def test_a_spoiled_element_leaves_its_neighbours_alone() -> None:
    x, start = doubles((0.2,), (float("nan"),), (-0.2,)), doubles((0.9,), (0.9,), (-0.9,))
    found = MultiStart(spread=2.0).solve(bind(WELLS, x, start), start)
    assert found.status.tolist() == [Status.CONVERGED, Status.NONFINITE, Status.CONVERGED]


def test_starts_may_be_drawn_by_the_caller() -> None:
    x, start = doubles((0.2,)), doubles((0.9,))

    def sampler(start: torch.Tensor, count: int) -> torch.Tensor:
        return torch.linspace(-1.5, 1.5, count, dtype=start.dtype)[None, :, None].expand(len(start), count, 1)

    assert MultiStart(sampler=sampler, starts=5).solve(bind(WELLS, x, start), start).u.item() < 0


@pytest.mark.untyped
def test_the_inner_solver_must_be_one() -> None:
    with pytest.raises(OptionTypeError, match="Newton"):
        MultiStart(solver="newton")
