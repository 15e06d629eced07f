"""The gradient's policy: what is checked where it is written down, and what it decides."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.errors import OptionError, OptionTypeError
from tacit.implicit import Implicit, OneStep, Truncated, Unrolled


def test_size_decides_between_dense_and_matrix_free_unless_one_is_named():
    assert Implicit().is_dense(600) and not Implicit().is_dense(601)
    assert Implicit(dense_limit=10).is_dense(10) and not Implicit(dense_limit=10).is_dense(11)
    assert Implicit(linear_solver="dense").is_dense(10**6)
    assert not Implicit(linear_solver="matrix-free").is_dense(1)


def test_a_declared_structure_is_never_formed():
    assert not Implicit(structure=tacit.linalg.Diagonal()).is_dense(2)


@pytest.mark.untyped
@pytest.mark.parametrize("structure", ["diagonal", 3, tacit.linalg.Diagonal], ids=str)
def test_a_structure_is_one_of_those_that_exist(structure: object):
    with pytest.raises(OptionTypeError, match="BlockDiagonal"):
        Implicit(structure=structure)


def test_how_far_y_may_be_off_knows_the_dtype_and_the_user():
    assert Implicit().stationary_within(torch.float64) == 1e-6
    assert Implicit().stationary_within(torch.float32) == 1e-3
    assert Implicit(stationarity_tol=0.5).stationary_within(torch.float64) == 0.5


def test_policies_are_values():
    assert Implicit(delta=1e-3) == Implicit(delta=1e-3) != Implicit()
    assert (Unrolled().steps, Truncated().terms, OneStep().newton) == (None, 10, False)


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Implicit(singular="pinw"), OptionError),
        (lambda: Implicit(weak=True), OptionTypeError),
        (lambda: Implicit(preconditioner=3), OptionTypeError),
        (lambda: Truncated(terms=0), OptionError),
        (lambda: OneStep(newton=1), OptionTypeError),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_at_once(make, kind):
    with pytest.raises(kind, match="received"):
        make()
