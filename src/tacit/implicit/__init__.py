"""The paper's section 4: one engine, one short file a proposition, and the policy that chooses among gradients."""

from tacit.implicit.kkt import Linearisation, kept_rows, kkt_matrix, kkt_residual, linearise
from tacit.implicit.linear import attach, solve_attached
from tacit.implicit.matrix_free import Survey, kkt_product, solve_matrix_free, survey
from tacit.implicit.policy import GradientPolicy, Implicit, OneStep, Truncated, Unrolled
from tacit.implicit.vjp import pull_back, pull_back_rows

__all__ = [
    "GradientPolicy",
    "Implicit",
    "Linearisation",
    "OneStep",
    "Survey",
    "Truncated",
    "Unrolled",
    "attach",
    "kept_rows",
    "kkt_matrix",
    "kkt_product",
    "kkt_residual",
    "linearise",
    "pull_back",
    "pull_back_rows",
    "solve_attached",
    "solve_matrix_free",
    "survey",
]
