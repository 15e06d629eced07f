"""DDN[envelope] The value's gradient is that of the Lagrangian; samples without an answer have none."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import tacit

from .cases import CASES, inputs, same


@pytest.mark.parametrize("name", ["free", "equality", "inequality", "mixed"])
def test_first_and_second_derivatives_are_those_of_finite_differences(name: str):
    case = CASES[name]
    x = case.x[:2].clone().requires_grad_()
    start = tacit.solve(case.problem, x.detach(), start=case.start).y

    def value(x):
        return tacit.value(case.problem, x, start=start)

    assert gradcheck(value, x)
    assert gradgradcheck(value, x)


def test_the_value_is_the_objective_at_the_solution():
    case = CASES["mixed"]
    s = tacit.solve(case.problem, case.x, start=case.start)
    expected = torch.stack([case.problem.objective(x, y) for x, y in zip(case.x, s.y, strict=True)])
    torch.testing.assert_close(tacit.value(case.problem, case.x, start=case.start), expected)


def test_a_sample_that_did_not_converge_has_no_gradient_and_its_neighbours_keep_theirs():
    problem = tacit.Problem(lambda x, u: (u - x).square().sum() + u.sum())
    x = inputs()
    x[1, 0] = torch.nan
    x.requires_grad_()
    with pytest.warns(tacit.errors.SolverWarning, match="samples 1"):
        v = tacit.value(problem, x, start=torch.zeros_like)
    (g,) = torch.autograd.grad(v.sum(), x)
    assert not g[1].any()
    torch.testing.assert_close(g[[0, 2, 3]], torch.ones(3, 3).double())


def test_a_y_that_is_no_solution_has_no_gradient_and_its_neighbours_keep_theirs():
    problem = tacit.Problem(lambda x, u: (u - x).square().sum() + u.sum())
    x = inputs().requires_grad_()
    off = torch.tensor([0.0, 0.1, 0.0, 0.0])[:, None]
    with pytest.warns(tacit.errors.SolverWarning, match="samples 1"):
        v = tacit.value(problem, x, solver=lambda x: x - 0.5 + off)
    (g,) = torch.autograd.grad(v.sum(), x)
    torch.testing.assert_close(g, (off == 0) * torch.ones(4, 3).double())


def test_forward_mode_too_keeps_a_sample_of_nan_to_itself():
    problem = tacit.Problem(lambda x, w, u: (u - w * x).square().sum() + u.sum())
    x, w = inputs(), torch.ones(3).double()
    clean = torch.func.jacfwd(lambda w: value_of(problem, x[[0, 2, 3]], w))(w)
    x[1, 0] = torch.nan
    found = torch.func.jacfwd(lambda w: value_of(problem, x, w))(w)
    torch.testing.assert_close(found[[0, 2, 3]], clean)
    assert not found[1].any()


def value_of(problem: tacit.Problem, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return tacit.value(problem, x, w, start=torch.zeros_like(x), in_dims=(0, None), on_failure="ignore")


def test_an_input_changed_in_place_and_a_second_backward_raise_with_advice():
    problem = tacit.Problem(lambda x, u: (u - x).square().sum() + u.sum())
    z = inputs().requires_grad_()
    changed = z * 1.0
    v = tacit.value(problem, changed, start=inputs()).sum()
    changed.mul_(2.0)
    with pytest.raises(tacit.errors.GradientError, match="modified in place"):
        v.backward()
    v = tacit.value(problem, z, start=inputs()).sum()
    v.backward()
    with pytest.raises(tacit.errors.GradientError, match="retain_graph=True"):
        v.backward()


def test_an_empty_batch_has_empty_values():
    case = CASES["equality"]
    x = case.x[:0].requires_grad_()
    v = tacit.value(case.problem, x, start=same)
    assert v.shape == (0,) and torch.autograd.grad(v.sum(), x)[0].shape == (0, 3)
