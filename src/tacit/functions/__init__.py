"""Calculus written once: penalties and norms, with value and derivatives. No argmin lives here."""

from __future__ import annotations

from tacit.functions.norms import lp_norm, lp_norm_gradient, lp_norm_hessian
from tacit.functions.penalties import (
    PENALTIES,
    Derivatives,
    Huber,
    Penalty,
    PseudoHuber,
    Quadratic,
    TruncatedQuadratic,
    Welsch,
    get_penalty,
)

__all__ = [
    "PENALTIES",
    "Derivatives",
    "Huber",
    "Penalty",
    "PseudoHuber",
    "Quadratic",
    "TruncatedQuadratic",
    "Welsch",
    "get_penalty",
    "lp_norm",
    "lp_norm_gradient",
    "lp_norm_hessian",
]
