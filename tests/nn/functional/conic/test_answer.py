"""Which rows of a cone program hold, and that the answer is exact."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.implicit import Implicit
from tacit.nn.functional.conic.answer import find_answer
from tacit.problem import Status
from tacit.shapes import Tensor
from tacit.solvers.external import Cones

pytest.importorskip("clarabel")
D = torch.float64


def find(P: Tensor, c: Tensor, A: Tensor, b: Tensor, cones: Cones):
    wanted, constant = torch.ones(c.shape[1], dtype=torch.bool), torch.zeros(cones.rows, dtype=torch.bool)
    return find_answer((P, c, A, b), cones, wanted, constant, Implicit(), 200, 1)


def onto_cone(points: Tensor):
    """The projection onto the second-order cone of three rows."""
    eye = torch.eye(3, dtype=D).expand(len(points), 3, 3)
    return find(eye, -points, -eye, torch.zeros_like(points), Cones(second_order=(3,)))


def test_inside_at_the_boundary_and_at_the_apex_other_rows_hold():
    points = torch.tensor([[3.0, 1, 1], [0.0, 3, 4], [-9, 3, 4]], dtype=D)
    found = onto_cone(points)
    assert found.status.tolist() == [Status.CONVERGED] * 3 and found.flags.tolist() == [0, 0, 0]
    assert found.system.keep.tolist() == [[False] * 4, [False] * 3 + [True], [True] * 3 + [False]]
    wanted = torch.tensor([[3.0, 1, 1], [2.5, 1.5, 2.0], [0, 0, 0]], dtype=D)
    torch.testing.assert_close(found.x, wanted, rtol=0, atol=1e-14)
    assert float(found.residual.max()) < 1e-14


def test_an_exponential_cone_is_met_on_its_curve():
    # minimise z subject to z >= exp(x), x >= 1
    A = torch.tensor([[[-1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, -1.0]]], dtype=D)
    b = torch.tensor([[-1.0, 0.0, 1.0, 0.0]], dtype=D)
    c = torch.tensor([[0.0, 1.0]], dtype=D)
    found = find(torch.zeros(1, 2, 2, dtype=D), c, A, b, Cones(nonnegative=1, exponential=1))
    torch.testing.assert_close(found.x, torch.tensor([[1.0, math.e]], dtype=D), rtol=0, atol=1e-13)
    assert found.status.tolist() == [Status.CONVERGED]


def test_a_spoiled_sample_is_alone():
    points = torch.tensor([[0.0, 3, 4], [float("nan"), 3, 4], [0.0, 3, 4]], dtype=D)
    found = onto_cone(points)
    assert found.status.tolist() == [Status.CONVERGED, Status.NONFINITE, Status.CONVERGED]
    assert bool(found.x[1].isnan().all()) and bool(found.x[[0, 2]].isfinite().all())


def test_an_engine_cut_short_does_not_pass_for_an_answer():
    points = torch.tensor([[0.0, 3, 4]], dtype=D)
    eye = torch.eye(3, dtype=D)[None]
    masks = torch.ones(3, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)
    data = (eye, -points, -eye, torch.zeros_like(points))
    found = find_answer(data, Cones(second_order=(3,)), *masks, Implicit(), 1, 1)
    assert found.status.item() != Status.CONVERGED or float(found.residual) < 1e-8
