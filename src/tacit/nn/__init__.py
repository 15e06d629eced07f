"""The zoo: one layer a file, each a declared problem with a fast closed form beside it."""

from __future__ import annotations

from tacit.nn import functional
from tacit.nn.convex_program import ConvexProgram
from tacit.nn.lp_ball import LpBall
from tacit.nn.lp_sphere import LpSphere
from tacit.nn.projected_linear import ProjectedLinear, insert_projection
from tacit.nn.quadratic_program import QuadraticProgram
from tacit.nn.robust_pool import RobustPool
from tacit.nn.robust_vector_pool import RobustVectorPool
from tacit.nn.simplex import Simplex

__all__ = [
    "ConvexProgram",
    "LpBall",
    "LpSphere",
    "ProjectedLinear",
    "QuadraticProgram",
    "RobustPool",
    "RobustVectorPool",
    "Simplex",
    "functional",
    "insert_projection",
]
