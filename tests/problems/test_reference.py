"""The library's derivatives at published solutions are those found by solving again, and only irregular samples are flagged."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import tacit
from problems import PROBLEMS, TestProblem, select
from problems.reference import Reference, derivative, extrapolate, natural_size, solution

GOOD, BETTER = 1e-6, 1e-9
SAMPLED = ("hs6", "hs24", "hs35", "hs43", "hs71", "hs86", "two_circles", "softmax", "geometric_circle", "mgh_meyer")
# Zero residuals and eleven digits of condition: here the differences end at seven digits, and say so themselves.
ROUGH = ("mgh_biggs_exp6", "hs117")
FLAG = {
    "singular": tacit.Flag.SINGULAR,
    "weak": tacit.Flag.WEAKLY_ACTIVE,
    "dependent": tacit.Flag.DEPENDENT,
}


@cache
def reference(name: str, sample: int) -> Reference | None:
    given = PROBLEMS[name]
    with np.errstate(all="ignore"):
        y = solution(given, sample)
        return None if y is None else derivative(given, sample, y)


def check(given: TestProblem, sample: int) -> float | None:
    """The error of the library's Jacobian; None where nothing determines y."""
    found = reference(given.name, sample)
    if found is None:
        return None
    x, y = given.x[sample : sample + 1], torch.from_numpy(found.y)[None]
    Dy = tacit.jacobian(given.problem, x, y=y)[0].numpy()
    assert int(tacit.regularity(given.problem, x, y=y).flags) == 0
    size = natural_size(given, sample, found)
    assert (found.error <= GOOD * size).all()
    return float((np.abs(Dy - found.Dy) / size).max())


@pytest.mark.parametrize("name", SAMPLED)
def test_derivative_is_that_of_solving_again_and_carries_no_flag(name: str) -> None:
    error = check(PROBLEMS[name], 0)
    assert error is not None and error < BETTER


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # scipy, of a problem without an objective
@pytest.mark.parametrize("given", select(kind=("regular", "feasibility")), ids=lambda given: given.name)
def test_every_derivative_is_that_of_solving_again_and_carries_no_flag(given: TestProblem) -> None:
    for sample in range(given.x.shape[0]):
        error = check(given, sample)
        assert error is None or error < (GOOD if given.name in ROUGH else BETTER)


@pytest.mark.parametrize("given", select(kind=tuple(FLAG)), ids=lambda given: given.name)
def test_irregular_samples_carry_their_flag_and_a_finite_derivative(given: TestProblem) -> None:
    y = tacit.solve(given.problem, given.x[:1], start=given.start[None]).y if given.y is None else given.y[None]
    flags = tacit.Flag(int(tacit.regularity(given.problem, given.x[:1], y=y).flags))
    assert flags & FLAG[given.kind]
    assert tacit.jacobian(given.problem, given.x[:1], y=y).isfinite().all()


def test_extrapolation_finds_the_derivative_and_how_well() -> None:
    steps = 0.1 * 0.5 ** np.arange(7)
    slopes = ((np.exp(steps) - np.exp(-steps)) / (2 * steps))[:, None]
    found, error = extrapolate(slopes)
    assert abs(found[0] - 1) < 1e-13
    assert abs(found[0] - 1) <= 10 * error[0] + 1e-15


def test_a_point_that_nothing_determines_has_no_reference() -> None:
    assert reference("point_on_circle", 0) is None
