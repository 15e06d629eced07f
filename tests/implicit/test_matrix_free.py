"""Without forming K: the same answers as dense, by structure, in the null space of the rows, or on the whole operator."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit import Implicit
from tacit.linalg import Banded, Diagonal

from .cases import Counted, bowl, close, flags, rand

FREE = Implicit(linear_solver="matrix-free")
PROBLEMS = {
    "free": tacit.Problem(bowl),
    "equality": tacit.Problem(bowl, equality=lambda x, u: (u * u).sum()[None] - 1 - x[:1].square()),
    "inequality": tacit.Problem(bowl, inequality=lambda x, u: torch.cat([u - 0.5, -u - 0.5])),
    # along its row the curvature is positive, across it negative: no conjugate gradients on the whole
    "indefinite": tacit.Problem(
        lambda x, u: 0.5 * (u[:2] - x[:2]).square().sum() - 0.5 * u[2].square(), equality=lambda x, u: u[2:] - x[2:]
    ),
}


def solved(name: str) -> tuple[tacit.Problem, torch.Tensor, torch.Tensor]:
    x = rand(3, 3, seed=2)
    return PROBLEMS[name], x, tacit.solve(PROBLEMS[name], x, start=torch.ones_like(x)).y


@pytest.mark.parametrize("name", PROBLEMS)
def test_it_equals_the_dense_gradient_in_first_and_second_order(name: str):
    problem, x, y = solved(name)
    found = []
    for policy in (FREE, Implicit(linear_solver="dense")):
        leaf = x.clone().requires_grad_()
        out = tacit.argmin(problem, leaf, solver=lambda _: y, gradient=policy)
        (first,) = torch.autograd.grad(out, leaf, torch.cos(y), create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), leaf)
        found.append((first, second))
    close(found[0][0], found[1][0], 1e-9)
    close(found[0][1], found[1][1], 1e-7)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_regular_sample_carries_no_flag(name: str):
    problem, x, y = solved(name)
    leaf = x.clone().requires_grad_()  # a warning would be an error
    tacit.argmin(problem, leaf, solver=lambda _: y, gradient=FREE).sum().backward()


def chain(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return torch.cosh(u - x).sum() + 5 * (u[1:] - u[:-1]).square().sum()


def settled(m: int, rows: int = 0, b: int = 1) -> tuple[tacit.Problem, torch.Tensor, torch.Tensor]:
    """A chain of m unknowns at a stationary point that was chosen first: the tilt t makes it one."""
    A = rand(rows, m, seed=1) / m**0.5
    y, lam = rand(b, m, seed=2), rand(rows, seed=3)
    equality = (lambda x, t, u: A @ u - A @ y[0]) if rows else None
    problem = tacit.Problem(lambda x, t, u: chain(x, u) + t @ u, equality=equality)
    x = torch.zeros(b, m, dtype=torch.float64)
    slope = torch.func.vmap(torch.func.grad(chain, argnums=1))(x, y)
    return problem, torch.stack([x, lam @ A - slope]), y


def pulled(problem, x, t, y, policy):
    leaf = x.clone().requires_grad_()
    out = tacit.argmin(problem, leaf, t, solver=lambda *_: y, gradient=policy)
    return torch.autograd.grad(out, leaf, torch.cos(y))[0]


@pytest.mark.parametrize("rows", [0, 4])
def test_structure_that_is_seen_or_declared_gives_the_same(rows: int):
    problem, (x, t), y = settled(700, rows)
    assert not Implicit().is_dense(700)
    ways = (Implicit(linear_solver="dense"), Implicit(), Implicit(structure=Banded(1)), FREE)
    found = [pulled(problem, x, t, y, policy) for policy in ways]
    for other in found[1:]:
        close(other, found[0], 1e-8)


def test_no_tensor_of_m_squared_is_made():
    problem, (x, t), y = settled(3000)
    with Counted() as counted:
        pulled(problem, x, t, y, FREE)
    assert counted.largest <= 4 * 3000


@pytest.mark.slow
def test_ten_thousand_unknowns_under_a_hundred_equalities_satisfy_their_own_equations():
    problem, (x, t), y = settled(10_000, 100)
    v = torch.cos(y)
    g = pulled(problem, x, t, y, FREE)
    # By hand: g = -B'w with B = -diag(cosh(u - x)); and w, by the projected system, satisfies A w = 0.
    w = g / torch.cosh(y - x)
    A = rand(100, 10_000, seed=1) / 100
    assert (A @ w[0]).abs().max() < 1e-9
    Hw = torch.cosh(y) * w
    bend = 10 * (w[:, 1:] - w[:, :-1])
    Hw = Hw + torch.nn.functional.pad(bend, (1, 0)) - torch.nn.functional.pad(bend, (0, 1))
    left = (Hw - v)[0]
    left = left - A.T @ torch.linalg.lstsq(A.T, left[:, None]).solution[:, 0]  # what no multiplier explains
    assert left.norm() < 1e-7 * v.norm()


def test_a_declared_structure_that_the_hessian_does_not_have_is_refused():
    problem, (x, t), y = settled(50)
    with pytest.raises(tacit.errors.GradientError, match=r"Diagonal\(\).*samples \[0\].*wider"):
        pulled(problem, x, t, y, Implicit(structure=Diagonal()))


@pytest.mark.parametrize("singular", ["pinv", "zero"])
def test_a_singular_sample_is_flagged_and_its_neighbours_are_not_touched(singular: str):
    problem = tacit.Problem(lambda w, x, u: 0.5 * (w * (u - x).square()).sum())
    w = torch.tensor([[1.0, 2.0, 3.0], [1.0, 0.0, 1.0]], dtype=torch.float64)
    x = rand(2, 3).requires_grad_()
    policy = Implicit(linear_solver="matrix-free", singular=singular)
    y = tacit.argmin(problem, w, x, solver=lambda w, x: x.detach(), gradient=policy)
    with pytest.warns(tacit.errors.GradientWarning, match="SINGULAR, samples 1"):
        (g,) = torch.autograd.grad(y.sum(), x)
    close(g[0], torch.ones(3, dtype=torch.float64))
    close(g[1], torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64) * (singular == "pinv"), 1e-8)


def test_forward_mode_is_refused_with_advice():
    problem, x, y = solved("free")
    with pytest.raises(tacit.errors.GradientError, match="matrix-free gradient expects reverse mode"):
        torch.func.jvp(lambda x: tacit.argmin(problem, x, solver=lambda _: y, gradient=FREE), (x,), (x,))


def test_flags_are_those_of_the_dense_report():
    problem, x, y = solved("equality")
    assert flags(problem, x, y=y, gradient=FREE) == flags(problem, x, y=y)
