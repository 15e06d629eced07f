"""What the experiments raise can be caught as what one would guess."""

from __future__ import annotations

from tacit.errors import TacitError
from tacit.experiments.common import errors


def test_every_error_is_tacits_and_a_built_in_one():
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, TacitError)
        assert issubclass(kind, (ValueError, RuntimeError))
