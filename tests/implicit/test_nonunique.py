"""DDN[nonunique] The derivative belongs to the y that was returned."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit.nonunique import branch_derivative, two_branches

from .cases import close, flags


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_each_branch_has_its_own_sign(sign):
    x = torch.tensor([[0.5], [-2.0]], dtype=torch.float64)
    y = 1 + sign * x
    close(tacit.jacobian(two_branches(), x, y=y), torch.full((2, 1, 1), sign).double())
    close(branch_derivative(x[:, 0], y[:, 0]), torch.full((2,), sign).double())
    assert flags(two_branches(), x, y=y) == [tacit.Flag(0)] * 2


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_backward_pass_uses_the_y_of_the_forward_pass(sign):
    x = torch.tensor([[0.5]], dtype=torch.float64).requires_grad_()
    y = tacit.argmin(two_branches(), x, solver=lambda x: 1 + sign * x)
    y.sum().backward()
    close(x.grad, torch.tensor([[sign]], dtype=torch.float64))


def test_where_the_branches_meet_neither_derivative_exists_and_the_report_says_so():
    x, y = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    assert flags(two_branches(), x, y=y)[0] & tacit.Flag.DEPENDENT
    assert tacit.jacobian(two_branches(), x, y=y).isfinite().all()


def test_two_minima_of_one_objective_each_keep_their_derivative():
    double_well = tacit.Problem(lambda x, u: (u.square() - x).square().sum())
    x = torch.tensor([[4.0], [4.0]], dtype=torch.float64)
    y = torch.tensor([[2.0], [-2.0]], dtype=torch.float64)
    close(tacit.jacobian(double_well, x, y=y)[:, 0, 0], torch.tensor([0.25, -0.25], dtype=torch.float64))
