"""Norms: value, gradient and Hessian are those of autograd, and the table's at the kinks."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.functions import lp_norm, lp_norm_gradient, lp_norm_hessian

U = torch.tensor([[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]], dtype=torch.float64)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_gradient_and_hessian_are_those_of_autograd(p: float) -> None:
    for u in U:
        torch.testing.assert_close(lp_norm_gradient(u, p), torch.func.grad(lambda u: lp_norm(u, p))(u))
        torch.testing.assert_close(lp_norm_hessian(u, p), torch.func.hessian(lambda u: lp_norm(u, p))(u))


def test_at_unit_norm_the_l2_cells_of_the_table_hold() -> None:
    y = U / U.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(lp_norm_gradient(y, 2), y)
    eye = torch.eye(3, dtype=y.dtype)
    torch.testing.assert_close(lp_norm_hessian(y, 2), eye - y[:, :, None] * y[:, None, :])


def test_l1_gradient_is_the_sign_and_its_hessian_zero() -> None:
    u = torch.tensor([2.0, 0.0, -1.0])
    assert lp_norm_gradient(u, 1).tolist() == [1.0, 0.0, -1.0]
    assert lp_norm_hessian(u, 1).eq(0).all()


def test_linf_gradient_marks_every_largest_coordinate_unscaled() -> None:
    u = torch.tensor([2.0, 0.0, -2.0])
    assert lp_norm_gradient(u, math.inf).tolist() == [1.0, 0.0, -1.0]
    assert lp_norm_hessian(u, math.inf).eq(0).all()


def test_the_gradient_at_zero_is_zero() -> None:
    for p in (1.0, 1.5, 2.0, 3.0, math.inf):
        assert lp_norm_gradient(torch.zeros(3), p).eq(0).all()
