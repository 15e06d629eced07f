from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from solvers.cases import BALL, bind, doubles
from tacit.errors import OptionError, OptionTypeError
from tacit.problem import Instance, Status
from tacit.solvers import LBFGS, Automatic, FixedPoint, InteriorPoint, MultiStart, Newton, Quadratic, Solver
from tacit.solvers.base import RUNNING, State, drive, tolerance

PLAIN = (LBFGS, Automatic, InteriorPoint, Newton, Quadratic, FixedPoint, MultiStart)


@pytest.mark.parametrize("solver", PLAIN)
def test_an_unknown_option_is_refused_with_the_nearest_known_one(solver: type[Solver]) -> None:
    known = "starts" if solver is MultiStart else "max_iter"
    with pytest.raises(OptionTypeError, match=f"Did you mean '{known}'"):
        solver(**{known + "s": 3})


@pytest.mark.parametrize("solver", [s for s in PLAIN if s is not MultiStart])
@pytest.mark.parametrize("value", [0, -3])
def test_an_absurd_count_is_refused(solver: type[Solver], value: int) -> None:
    with pytest.raises(OptionError, match=str(value)):
        solver(max_iter=value)


@pytest.mark.untyped
@pytest.mark.parametrize("solver", [s for s in PLAIN if s is not MultiStart])
@pytest.mark.parametrize("value", [2.5, "many", True, None])
def test_a_count_that_is_no_integer_is_refused(solver: type[Solver], value: object) -> None:
    with pytest.raises(OptionTypeError, match="max_iter"):
        solver(max_iter=value)


@pytest.mark.parametrize("value", [0.0, -1e-8, float("nan"), float("inf")])
def test_an_absurd_tolerance_is_refused(value: float) -> None:
    with pytest.raises(OptionError, match="tol"):
        Newton(tol=value)


@pytest.mark.untyped
def test_a_tolerance_that_is_no_number_is_refused() -> None:
    with pytest.raises(OptionTypeError, match="tol"):
        InteriorPoint(tol="tight")


def test_the_default_tolerance_follows_the_dtype() -> None:
    assert tolerance(None, torch.float64) < 1e-9 < tolerance(None, torch.float32) < 1e-3
    assert tolerance(1e-5, torch.float64) == 1e-5


def test_finished_elements_leave_the_batch_and_the_rest_runs_out_of_steps() -> None:
    x = doubles((1.0,), (2.0,), (3.0,))
    sizes = []

    def advance(instance: Instance, state: State) -> State:
        sizes.append(instance.batch)
        u = state.u + 1
        done = u[:, 0] >= instance.values[0][:, 0]
        return replace(state, u=u, status=torch.where(done, 0, RUNNING))

    blank = State(torch.zeros_like(x), torch.zeros(3, dtype=x.dtype), torch.full((3,), RUNNING))
    final, iterations = drive(bind(BALL, x, x), blank, advance, max_iter=2)
    assert sizes == [3, 2]
    assert iterations.tolist() == [1, 2, 2]
    assert final.status.tolist() == [0, 0, Status.MAX_ITERATIONS]
    assert final.u[:, 0].tolist() == [1.0, 2.0, 2.0]
