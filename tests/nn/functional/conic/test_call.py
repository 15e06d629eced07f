"""Cone programs as a function."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from tacit.errors import GradientWarning, InputValueError
from tacit.nn.functional import cone_program
from tacit.shapes import Tensor
from tacit.solvers.external import Cones

pytest.importorskip("clarabel")
D = torch.float64


def disc(batch: int = 2) -> list[Tensor]:
    """|x| <= b_0 around the origin, with a cost that differs between samples."""
    A = torch.tensor([[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]], dtype=D).expand(batch, 3, 2)
    angle = torch.arange(batch, dtype=D)
    c = torch.stack([angle.cos(), angle.sin()], 1)
    return [torch.zeros(batch, 2, 2, dtype=D), c, A.clone(), torch.tensor([[1.0, 0.0, 0.0]], dtype=D).repeat(batch, 1)]


def test_the_answer_and_all_four_gradients():
    data = disc()
    torch.testing.assert_close(cone_program(*data, Cones(second_order=(3,))), -data[1], rtol=0, atol=1e-12)
    leaves = [t.requires_grad_() for t in data]

    def symmetric(P: Tensor, *rest: Tensor) -> Tensor:
        return cone_program(0.5 * (P + P.mT), *rest, Cones(second_order=(3,)))

    assert gradcheck(symmetric, leaves, check_forward_ad=True, fast_mode=True)


def test_a_free_unknown_is_a_flaw_only_if_it_is_wanted():
    P, c, A, b = disc()
    wider = [
        torch.nn.functional.pad(P, (0, 1, 0, 1)),
        torch.nn.functional.pad(c, (0, 1)),
        torch.nn.functional.pad(A, (0, 1)),
        b,
    ]
    leaf = wider[1].clone().requires_grad_()
    x = cone_program(wider[0], leaf, *wider[2:], Cones(second_order=(3,)), wanted=torch.tensor([True, True, False]))
    (grad,) = torch.autograd.grad(x[:, 0].sum(), leaf)
    small = c.clone().requires_grad_()
    (alone,) = torch.autograd.grad(cone_program(P, small, A, b, Cones(second_order=(3,)))[:, 0].sum(), small)
    torch.testing.assert_close(grad[:, :2], alone, rtol=0, atol=1e-10)
    x = cone_program(wider[0], leaf, *wider[2:], Cones(second_order=(3,)))
    with pytest.warns(GradientWarning, match="SINGULAR"):
        torch.autograd.grad(x[:, 0].sum(), leaf)


def test_a_row_stated_twice_is_a_flaw_only_if_it_may_change():
    one = torch.ones(1, 1, 1, dtype=D)
    A, b = torch.ones(1, 2, 1, dtype=D), torch.ones(1, 2, dtype=D)
    c = torch.tensor([[-3.0]], dtype=D, requires_grad=True)
    x = cone_program(one, c, A, b, Cones(nonnegative=2), constant=torch.tensor([True, True]))
    assert torch.autograd.grad(x.sum(), c)[0].item() == pytest.approx(0.0, abs=1e-12)
    x = cone_program(one, c, A, b, Cones(nonnegative=2))
    with pytest.warns(GradientWarning, match="DEPENDENT"):
        torch.autograd.grad(x.sum(), c)


def test_an_empty_batch_gives_an_empty_answer():
    data = [t[:0] for t in disc()]
    assert cone_program(*data, Cones(second_order=(3,))).shape == (0, 2)


def test_shapes_that_do_not_fit_are_named():
    P, c, A, b = disc()
    with pytest.raises(InputValueError, match="A expects shape"):
        cone_program(P, c, A[:, :2], b[:, :2], Cones(second_order=(3,)))
