"""Engines of other projects, each an optional extra: solved sample by sample, polished and judged like everything else."""

from tacit.solvers.external.clarabel import Clarabel, Cones
from tacit.solvers.external.daqp import Daqp
from tacit.solvers.external.ipopt import Ipopt
from tacit.solvers.external.scipy import SciPy

__all__ = ["Clarabel", "Cones", "Daqp", "Ipopt", "SciPy"]
