"""DDN[bilevel] `D J = D_X J + D_Y J Dy`, and the shortcut; DDN[envelope] `tacit.value` without a linear solve."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit.bilevel import shortcut_derivative, total_derivative

from .cases import Counted, bowl, close, rand

FREE = tacit.Problem(bowl)
HELD = tacit.Problem(
    bowl,
    equality=lambda x, u: (u.sum() - x[0] * x[1])[None],
    inequality=lambda x, u: torch.stack([u.square().sum() - 1 - x[2].square(), u[0] - 5]),
)
BOTH = pytest.mark.parametrize("problem", [FREE, HELD], ids=["unconstrained", "constrained"])


def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x.sin() * y).sum(1) + y.square().sum(1)


@BOTH
def test_total_derivative_is_what_backward_gives(problem):
    x = (1 + 0.2 * rand(3, 3)).requires_grad_()
    y = tacit.argmin(problem, x, start=x.detach())
    (found,) = torch.autograd.grad(outer(x, y).sum(), x)
    x0, y0 = x.detach().requires_grad_(), y.detach().requires_grad_()
    J_X, J_Y = torch.autograd.grad(outer(x0, y0).sum(), (x0, y0))
    close(found, total_derivative(J_X, J_Y, tacit.jacobian(problem, x0.detach(), y=y0.detach())), 1e-9)


@BOTH
def test_the_shortcut_is_the_total_derivative_where_y_enters_by_f_alone(problem):
    x = 1 + 0.2 * rand(3, 3)
    s = tacit.solve(problem, x, start=x)
    lam = torch.cat([s.equality, s.inequality], 1)

    def g(x: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
        return f.square() + x.sum(1) * f

    def lagrangian(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        value = torch.vmap(problem.objective)(x, y)
        if problem.equality is None:
            return value
        rows = torch.vmap(lambda x, y: torch.cat([problem.equality(x, y), problem.inequality(x, y)]))(x, y)
        return value - (lam * rows).sum(1)

    live, f = x.clone().requires_grad_(), torch.vmap(problem.objective)(x, s.y).requires_grad_()
    g_X, g_F = torch.autograd.grad(g(live, f).sum(), (live, f))
    (L_X,) = torch.autograd.grad(lagrangian(live, s.y).sum(), live)
    through = x.clone().requires_grad_()
    y = tacit.argmin(problem, through, start=s.y)
    (whole,) = torch.autograd.grad(g(through, torch.vmap(problem.objective)(through, y)).sum(), through)
    close(shortcut_derivative(g_X, g_F, L_X), whole, 1e-7)
    again = x.clone().requires_grad_()
    (short,) = torch.autograd.grad(g(again, tacit.value(problem, again, start=s.y)).sum(), again)
    close(short, whole, 1e-7)


@BOTH
def test_the_value_s_gradient_matches_finite_differences_of_the_value(problem):
    x = 1 + 0.2 * rand(2, 3)
    live = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(tacit.value(problem, live, start=x).sum(), live)
    step, e = 1e-4, torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64)
    ahead, behind = (tacit.value(problem, x + sign * step * e, start=x) for sign in (1, -1))
    close((ahead - behind) / (2 * step), found @ e, 1e-6)


@BOTH
def test_the_value_s_second_derivative_matches_finite_differences_of_its_gradient(problem):
    x = 1 + 0.2 * rand(2, 3)
    e, step = torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64), 1e-4

    def slope(x: torch.Tensor) -> torch.Tensor:
        live = x.clone().requires_grad_()
        return torch.autograd.grad(tacit.value(problem, live, start=x).sum(), live)[0]

    live = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(tacit.value(problem, live, start=x).sum(), live, create_graph=True)
    (second,) = torch.autograd.grad((first @ e).sum(), live)
    close((slope(x + step * e) - slope(x - step * e)) / (2 * step), second, 1e-5)


@BOTH
def test_the_value_s_first_derivative_takes_no_linear_solve(problem):
    x = (1 + 0.2 * rand(2, 3)).requires_grad_()
    v = tacit.value(problem, x, start=x.detach())
    with Counted() as count:
        torch.autograd.grad(v.sum(), x, retain_graph=True)
    assert count.names and not count.solves
    y = tacit.argmin(problem, x, start=x.detach())
    with Counted() as count:
        torch.autograd.grad(y.sum(), x)
    assert count.solves  # the counter counts: a node's own gradient does solve


def test_the_value_of_a_feasibility_problem_is_refused():
    with pytest.raises(tacit.errors.InputValueError, match="objective"):
        tacit.value(tacit.Problem(None, equality=lambda x, u: u - x), rand(2, 3), start=rand(2, 3))
