"""Through a node, at the test problems: derivatives by torch's own checks, and neighbours that go wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacfwd, jacrev, vmap
from torch.testing import assert_close

import tacit
from problems import PROBLEMS, TestProblem, select
from problems.reference import newton
from problems.test_reference import reference
from problems.verify import Calculus
from tacit.shapes import Tensor

SAMPLED = ("hs6", "hs28", "hs43", "two_circles", "softmax")


def moderate(given: TestProblem) -> bool:
    """Whether absolute differences of 1e-6 mean something: parameters and unknowns of size about one, and few."""
    if given.y is None or given.m > 6 or given.n > 8:
        return False
    return all(bool((v == 0).logical_or((v.abs() > 1e-2) & (v.abs() < 1e2)).all()) for v in (given.x[0], given.y))


# Fewer rows than unknowns and no objective: nothing determines y, and so there is no derivative to compare with.
UNDETERMINED = ("point_on_circle", "point_on_line", "plane_in_the_orthant")
# Sums of exponentials so alike that H has a condition of 1e6 and more: differences of gradients, 1e-6 apart, are noise.
ALIKE = ("mgh_osborne_1", "mgh_biggs_exp6")
LEFT_OUT = (*UNDETERMINED, *ALIKE)
CHOSEN = [g.name for g in select(kind=("regular", "feasibility")) if moderate(g) and g.name not in LEFT_OUT]


def follow(name: str) -> Callable[..., Tensor]:
    """A solver that finds solutions near that of the first sample by Newton's method on the rows that hold there."""
    given, found = PROBLEMS[name], reference(name, 0)
    assert found is not None
    calculus = Calculus(given, given.x[0])
    A, force = calculus.rows(found.y, found.active, 1), calculus.call("objective", found.y, 1)
    lam = np.linalg.lstsq(A.T, force, rcond=None)[0] if len(A) else np.zeros(0)

    def solver(x: Tensor) -> Tensor:
        u, mu = (torch.from_numpy(v).expand(len(x), -1) for v in (found.y, lam))
        return newton(given, x, u, mu, found.active)[0]

    return solver


def checked(name: str) -> None:
    problem, solver = PROBLEMS[name].problem, follow(name)
    x = PROBLEMS[name].x[:1].clone().requires_grad_()

    def node(x: Tensor) -> Tensor:
        return tacit.argmin(problem, x, solver=solver)

    def one(x: Tensor) -> Tensor:
        return node(x[None])[0]

    assert gradcheck(node, x, atol=1e-6)
    assert gradgradcheck(node, x, atol=1e-6)
    expected = tacit.jacobian(problem, x.detach(), y=node(x.detach()))
    for transform in (jacrev, jacfwd):
        assert_close(vmap(transform(one))(x.detach()), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SAMPLED)
def test_gradcheck_and_gradgradcheck_hold_and_transforms_agree(name: str) -> None:
    checked(name)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in CHOSEN if name not in SAMPLED])
def test_gradcheck_and_gradgradcheck_hold_and_transforms_agree_everywhere(name: str) -> None:
    checked(name)


def test_there_are_thirty_of_them_and_more() -> None:
    assert len(set(CHOSEN) | set(SAMPLED)) >= 30


def alone_among(name: str, worth: float) -> None:
    """Eight samples of which one is broken by an input: the other seven are what they are without it."""
    given = PROBLEMS[name]
    solver = follow(name)
    spread = 1 + 1e-3 * torch.sin(torch.arange(8.0 * given.n)).reshape(8, given.n).double()
    x = given.x[:1] * spread
    others = torch.arange(8) != 3

    def run(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = x.clone().requires_grad_()
        y = tacit.argmin(given.problem, x, solver=solver, on_failure="ignore")
        weights = torch.cos(torch.arange(float(y.numel()))).reshape(y.shape).double()
        (g,) = torch.autograd.grad((weights * y)[others].sum(), x)
        return y.detach(), g, tacit.jacobian(given.problem, x.detach(), y=y.detach())

    clean = run(x)
    broken = x.clone()
    broken[3, 0] = worth
    for one, other in zip(run(broken), clean, strict=True):
        assert_close(one[others], other[others], rtol=1e-12, atol=1e-12 * float(other.abs().max()))
    y = run(broken)[0]
    r = tacit.regularity(given.problem, broken, y=y)
    assert int(r.flags[3]) & tacit.Flag.NONFINITE and not r.flags[others].any()
    status = tacit.solve(given.problem, broken, solver=solver, on_failure="ignore").status
    assert status[3] == tacit.Status.NONFINITE and not status[others].any()


@pytest.mark.parametrize("worth", [float("nan"), float("inf")], ids=["nan", "inf"])
@pytest.mark.parametrize("name", SAMPLED)
def test_a_broken_neighbour_changes_nothing(name: str, worth: float) -> None:
    alone_among(name, worth)


@pytest.mark.full
@pytest.mark.parametrize("name", CHOSEN)
def test_a_broken_neighbour_changes_nothing_anywhere(name: str) -> None:
    alone_among(name, float("nan"))
