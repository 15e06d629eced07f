"""The rows that a cone program is declared by."""

from __future__ import annotations

import torch

from tacit.nn.functional.conic.declared import count_rows, declared, exponential_gap, split, square_gap
from tacit.solvers.external import Cones

CONES = Cones(1, 2, (3, 2), 1)


def test_slacks_are_shared_out_in_order():
    zero, nonnegative, second_order, exponential = split(torch.arange(11.0), CONES)
    assert CONES.rows == 11
    assert zero.tolist() == [0] and nonnegative.tolist() == [1, 2]
    assert [s.tolist() for s in second_order] == [[3, 4, 5], [6, 7]] and exponential.tolist() == [[8, 9, 10]]


def test_gaps_are_negative_inside_and_zero_on_the_boundary():
    assert square_gap(torch.tensor([[5.0, 3, 4], [6, 3, 4], [0, 0, 0]])).tolist() == [0.0, -5.5, 0.0]
    points = torch.tensor([[[0.0, 1, 1]], [[0, 1, 2]], [[-1, 0, 2]]])
    assert exponential_gap(points).flatten().tolist() == [0.0, -1.0, -2.0]


def test_the_declaration_has_rows_of_both_kinds_for_a_second_order_cone():
    assert count_rows(CONES) == (6, 5)
    n, generator = 2, torch.Generator().manual_seed(0)
    A, b, x = torch.randn(11, n, generator=generator), torch.randn(11, generator=generator), torch.ones(n)
    inputs = (torch.eye(n), torch.ones(n), A, b, torch.eye(n), torch.zeros(n))
    problem, s = declared(CONES), b - A @ x
    assert float(problem.objective(*inputs, x)) == 1.0 + 2.0 + 1.0
    torch.testing.assert_close(problem.equality(*inputs, x), -torch.cat([s[:1], s[3:8]]))
    torch.testing.assert_close(problem.inequality(*inputs, x)[:2], -s[1:3])
    torch.testing.assert_close(problem.inequality(*inputs, x)[2], square_gap(s[3:6]))
