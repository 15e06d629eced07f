"""Batched linear algebra that knows, for every element, how well it went. It has never heard of a Problem."""

from tacit.linalg.dense import Factor, factor
from tacit.linalg.equilibrate import equilibrate
from tacit.linalg.krylov import KrylovResult, conjugate_gradients, gmres, minres
from tacit.linalg.nnls import sign_constrained_least_squares
from tacit.linalg.nullspace import (
    MinimumNorm,
    NullspaceInfo,
    minimum_norm,
    minimum_norm_map,
    reduced_inertia,
    solution_family,
)
from tacit.linalg.rows import independent_rows

__all__ = [
    "Factor",
    "KrylovResult",
    "MinimumNorm",
    "NullspaceInfo",
    "conjugate_gradients",
    "equilibrate",
    "factor",
    "gmres",
    "independent_rows",
    "minimum_norm",
    "minimum_norm_map",
    "minres",
    "reduced_inertia",
    "sign_constrained_least_squares",
    "solution_family",
]
