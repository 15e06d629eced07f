"""Finds answers: batched solvers, forward only, each element with its own step, stopping test and status."""

from tacit.solvers import external
from tacit.solvers.automatic import Automatic
from tacit.solvers.base import Found, Progress, Solver
from tacit.solvers.choice import default_solver
from tacit.solvers.closed_form import ClosedForm
from tacit.solvers.dense_qp import Quadratic
from tacit.solvers.fixed_point import FixedPoint
from tacit.solvers.gradient_descent import GradientDescent
from tacit.solvers.interior_point import InteriorPoint
from tacit.solvers.lbfgs import LBFGS
from tacit.solvers.least_squares import GaussNewton, LevenbergMarquardt
from tacit.solvers.multi_start import MultiStart
from tacit.solvers.newton import Newton
from tacit.solvers.quadratic import Program, QuadraticFound, solve_quadratic
from tacit.solvers.tracing import Trace, trace

__all__ = [
    "LBFGS",
    "Automatic",
    "ClosedForm",
    "FixedPoint",
    "Found",
    "GaussNewton",
    "GradientDescent",
    "InteriorPoint",
    "LevenbergMarquardt",
    "MultiStart",
    "Newton",
    "Program",
    "Progress",
    "Quadratic",
    "QuadraticFound",
    "Solver",
    "Trace",
    "default_solver",
    "external",
    "solve_quadratic",
    "trace",
]
