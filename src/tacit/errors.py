"""Every exception and warning of the library. A message says what was expected, what came, and what to do next.

Each class also derives from the built-in exception a caller would guess (`TypeError`, `ValueError`, `RuntimeError`),
so that both `except tacit.errors.TacitError` and `except ValueError` do what one hopes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "CapturedTensorError",
    "ConvergenceError",
    "FunctionError",
    "GradientError",
    "GradientWarning",
    "InputTypeError",
    "InputValueError",
    "MissingDependencyError",
    "OptionError",
    "OptionTypeError",
    "SolverError",
    "SolverWarning",
    "TacitError",
    "TacitWarning",
    "nearest",
]


class TacitError(Exception):
    """Base of everything tacit raises."""


class InputTypeError(TacitError, TypeError):
    """An argument is of the wrong type, or a tensor of the wrong dtype, layout or device."""


class InputValueError(TacitError, ValueError):
    """An argument has the right type but the wrong shape or rank."""


class OptionError(TacitError, ValueError):
    """An option has a value that makes no sense (a tolerance of -1), or no such option exists."""


class OptionTypeError(TacitError, TypeError):
    """An option has the wrong type (`max_iter=2.5`), or no option has that name."""


class FunctionError(TacitError, RuntimeError, ValueError):
    """An objective or constraint returned something it must not, or does what cannot be differentiated per sample."""


class CapturedTensorError(TacitError, RuntimeError):
    """A function uses a tensor, not declared as an input, whose gradient could not be followed."""


class GradientError(TacitError, RuntimeError):
    """A gradient was asked for that does not exist under the chosen policy."""


class SolverError(TacitError, RuntimeError):
    """A solver was used in a way it does not support, or returned something unusable."""


class ConvergenceError(SolverError):
    """Some samples did not converge and `on_failure="raise"` was asked for."""


class MissingDependencyError(TacitError, ImportError):
    """An optional extra is not installed; the message holds the command that installs it."""


class TacitWarning(UserWarning):
    """Base of every warning tacit gives."""


class SolverWarning(TacitWarning):
    """Some samples did not converge."""


class GradientWarning(TacitWarning):
    """Some samples' gradients do not mean what the formula assumes."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint " Did you mean 'x'?" for a misspelt name, or nothing when no known name is near.

    >>> nearest("singlar", ["singular", "weak"])
    " Did you mean 'singular'?"
    """
    match = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean '{match[0]}'?" if match else ""
