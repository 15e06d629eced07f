"""The layers of the zoo as functions: tensors in, tensors out, no state."""

from __future__ import annotations

from tacit.nn.functional.conic import cone_program
from tacit.nn.functional.pooling import robust_pool
from tacit.nn.functional.projection import lp_ball, lp_sphere, simplex
from tacit.nn.functional.quadratic import quadratic_program, solve_quadratic_program
from tacit.nn.functional.vector_pooling import robust_vector_pool

__all__ = [
    "cone_program",
    "lp_ball",
    "lp_sphere",
    "quadratic_program",
    "robust_pool",
    "robust_vector_pool",
    "simplex",
    "solve_quadratic_program",
]
