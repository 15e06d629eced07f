"""Batched linear algebra that knows, for every element, how well it went. It has never heard of a Problem."""

from tacit.linalg.bordered import BorderedSolution, bordered_solve
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
from tacit.linalg.structured import (
    Banded,
    BandedMatrix,
    BlockDiagonal,
    BlockDiagonalMatrix,
    Diagonal,
    DiagonalMatrix,
    Structure,
    StructuredFactor,
    StructuredMatrix,
    detect_structure,
    misfit,
)

__all__ = [
    "Banded",
    "BandedMatrix",
    "BlockDiagonal",
    "BlockDiagonalMatrix",
    "BorderedSolution",
    "Diagonal",
    "DiagonalMatrix",
    "Factor",
    "KrylovResult",
    "MinimumNorm",
    "NullspaceInfo",
    "Structure",
    "StructuredFactor",
    "StructuredMatrix",
    "bordered_solve",
    "conjugate_gradients",
    "detect_structure",
    "equilibrate",
    "factor",
    "gmres",
    "independent_rows",
    "minimum_norm",
    "minimum_norm_map",
    "minres",
    "misfit",
    "reduced_inertia",
    "sign_constrained_least_squares",
    "solution_family",
]
