"""Finds answers: batched solvers, forward only, each element with its own step, stopping test and status."""

from tacit.solvers.automatic import Automatic
from tacit.solvers.base import Found, Progress, Solver
from tacit.solvers.choice import default_solver
from tacit.solvers.gradient_descent import GradientDescent
from tacit.solvers.interior_point import InteriorPoint
from tacit.solvers.newton import Newton

__all__ = ["Automatic", "Found", "GradientDescent", "InteriorPoint", "Newton", "Progress", "Solver", "default_solver"]
