"""A solution tells, sample by sample, how its search ended."""

from __future__ import annotations

import torch

import tacit
from tacit.problem import Solution, Status


def solution(codes: list[int]) -> Solution:
    b = len(codes)
    return Solution(
        y=torch.zeros(b, 6),
        equality=torch.zeros(b, 0),
        inequality=torch.zeros(b, 1),
        residual=torch.zeros(b),
        iterations=torch.arange(b),
        status=torch.tensor(codes, dtype=torch.int64),
    )


def test_zero_is_converged_and_nothing_else():
    assert Status.CONVERGED == 0
    assert solution([0, 1, 5]).converged.tolist() == [True, False, False]


def test_it_prints_a_summary_and_the_first_ten():
    text = str(solution([0] * 11 + [int(Status.INFEASIBLE)]))
    assert "12 samples: 11 CONVERGED, 1 INFEASIBLE" in text
    assert "(2 more)" in text and ", ...]" in text
    assert "empty batch" in str(solution([]))


def test_everything_in_it_is_detached():
    x = torch.ones(2, 1, requires_grad=True)
    s = tacit.solve(tacit.Problem(lambda x, u: (u - x).square().sum(), inequality=lambda x, u: u - 9), x, start=x)
    assert not any(t.requires_grad for t in (s.y, s.equality, s.inequality, s.residual))
    assert s.inequality.shape == (2, 1) and s.equality.shape == (2, 0)
