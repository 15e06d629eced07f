"""Every exception and warning can be caught as tacit's, and as the built-in that a caller would guess."""

from __future__ import annotations

import pytest

from tacit import errors
from tacit.errors import nearest

CLASSES = [value for name in errors.__all__ if isinstance(value := getattr(errors, name), type)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_class_is_documented_and_is_either_an_error_or_a_warning_of_ours(error):
    assert error.__doc__
    assert issubclass(error, errors.TacitError) != issubclass(error, errors.TacitWarning)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InputTypeError, TypeError),
        (errors.InputValueError, ValueError),
        (errors.OptionError, ValueError),
        (errors.OptionTypeError, TypeError),
        (errors.MissingDependencyError, ImportError),
        (errors.GradientWarning, UserWarning),
    ],
)
def test_a_class_is_also_the_builtin_one_would_guess(error, builtin):
    assert issubclass(error, builtin)


def test_a_near_name_is_suggested_and_a_far_one_is_not():
    assert nearest("singlar", ["singular", "weak"]) == " Did you mean 'singular'?"
    assert nearest("zzz", ["singular", "weak"]) == ""
    assert nearest("anything", []) == ""
