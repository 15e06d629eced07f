"""What is asked and what is answered: Problem, Instance, Solution, the letters of the paper, active rows, multipliers."""

from tacit.problem.flags import Flag
from tacit.problem.inputs import (
    Inputs,
    describe,
    flatten_samples,
    is_differentiable,
    read_inputs,
    read_unknown,
    travels_as_tensor,
)
from tacit.problem.instance import Instance
from tacit.problem.problem import Problem
from tacit.problem.solution import Solution, Status

__all__ = [
    "Flag",
    "Inputs",
    "Instance",
    "Problem",
    "Solution",
    "Status",
    "describe",
    "flatten_samples",
    "is_differentiable",
    "read_inputs",
    "read_unknown",
    "travels_as_tensor",
]
