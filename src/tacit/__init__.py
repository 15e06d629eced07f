"""tacit: deep declarative networks in PyTorch.

Declare a layer by what its output must satisfy; tacit solves it and differentiates it exactly.
"""

from tacit import errors, linalg, nn, solvers, testing
from tacit import functions as functions  # reachable by name; not among the twenty
from tacit.implicit import Implicit, OneStep, Truncated, Unrolled
from tacit.implicit.report import Regularity
from tacit.node import Node, argmin, jacobian, regularity, solve, value
from tacit.problem import Flag, Problem, Solution, Status

__all__ = [
    "Flag",
    "Implicit",
    "Node",
    "OneStep",
    "Problem",
    "Regularity",
    "Solution",
    "Status",
    "Truncated",
    "Unrolled",
    "argmin",
    "errors",
    "jacobian",
    "linalg",
    "nn",
    "regularity",
    "solve",
    "solvers",
    "testing",
    "value",
]
