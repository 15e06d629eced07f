"""A problem is three functions of one sample, any of which may be missing, but not all."""

from __future__ import annotations

import dataclasses

import pytest

import tacit
from tacit.errors import InputTypeError, InputValueError


def test_it_holds_its_functions_and_cannot_be_changed():
    problem = tacit.Problem(min, equality=max)
    assert (problem.objective, problem.equality, problem.inequality) == (min, max, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.objective = max


def test_nothing_at_all_is_no_problem():
    with pytest.raises(InputValueError, match="at least one constraint"):
        tacit.Problem(None)


@pytest.mark.untyped
@pytest.mark.parametrize("role", ["objective", "equality", "inequality"])
def test_what_cannot_be_called_is_refused_by_name(role):
    with pytest.raises(InputTypeError, match=rf"Problem\({role}=...\) expects a function .* received int"):
        tacit.Problem(**{"objective": min, role: 3})
