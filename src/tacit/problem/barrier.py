"""DDN[log-barrier] Inequalities as a logarithmic barrier: the approximation of earlier work (section 2), by name.

    minimise  f(x, u) - 1/t sum_i log(-g_i(x, u))   subject to   h(x, u) = 0

Its solution lies strictly inside and approaches that of the problem as t grows, at a distance of about q/t; so does its
gradient, which is smooth even where that of the problem is one-sided. The exact gradient needs none of this: it is the
default everywhere.
"""

from __future__ import annotations

from typing import Any

import torch

from tacit.errors import InputValueError
from tacit.options import check_number
from tacit.problem.problem import Problem
from tacit.shapes import Tensor

__all__ = ["log_barrier"]


def log_barrier(problem: Problem, t: float) -> Problem:
    """The problem with its inequalities in the objective; give it a `start` strictly inside them.

    >>> inside = log_barrier(Problem(lambda x, u: u.sum(), inequality=lambda x, u: -u), t=10.0)
    >>> inside.objective(torch.zeros(1), torch.ones(1))
    tensor(1.)
    """
    check_number("log_barrier", "t", t)
    inequality = problem.inequality
    if inequality is None:
        raise InputValueError("log_barrier expects a problem with an inequality; received one without.")

    def objective(*args: Any) -> Tensor:
        room = -inequality(*args)
        inside = room > 0
        barrier = -torch.where(inside, room, 1.0).log().sum() / t
        value = barrier if problem.objective is None else problem.objective(*args) + barrier
        return torch.where(inside.all(), value, torch.inf)

    return Problem(objective, problem.equality)
