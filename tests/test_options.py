"""Options: a wrong name, type or value is refused where it is written, with what was expected and what came."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tacit.errors import OptionError, OptionTypeError
from tacit.options import check_choice, check_count, check_flag, check_number, strict_options


@strict_options
@dataclass(frozen=True)
class Newton:
    """Two options."""

    tol: float = 1e-8
    max_iter: int = 10


def test_known_options_pass_by_name_and_by_place():
    assert Newton(1e-3, max_iter=5) == Newton(tol=1e-3, max_iter=5)


def test_an_unknown_option_names_the_nearest_and_all_the_others():
    with pytest.raises(
        OptionTypeError, match=r"no option 'max_iters'. Did you mean 'max_iter'\? Its options: tol, max"
    ):
        Newton(max_iters=3)
    with pytest.raises(OptionTypeError, match="at most 2 options; received 3"):
        Newton(1, 2, 3)


@pytest.mark.parametrize("value", [1, 0.5, 1e300])
def test_a_number_is_positive_and_finite(value):
    check_number("Newton", "tol", value)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_a_number_that_makes_no_sense_is_a_value_error(value):
    with pytest.raises(OptionError, match=r"Newton\(tol=...\) expects a positive finite number; received"):
        check_number("Newton", "tol", value)


def test_zero_is_admitted_where_it_may_be():
    check_number("Newton", "tol", 0.0, zero=True)


@pytest.mark.parametrize("value", ["1", None, True, [1]])
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(OptionTypeError, match="expects a positive number"):
        check_number("Newton", "tol", value)


@pytest.mark.parametrize(
    ("value", "kind"), [(0, OptionError), (-1, OptionError), (2.0, OptionTypeError), (True, OptionTypeError)]
)
def test_a_count_is_a_whole_number_of_at_least_one(value, kind):
    check_count("Newton", "max_iter", 1)
    with pytest.raises(kind, match="whole number"):
        check_count("Newton", "max_iter", value)


def test_a_count_of_nothing_is_admitted_where_it_may_be():
    check_count("Banded", "bandwidth", 0, zero=True)
    with pytest.raises(OptionError, match="at least 0"):
        check_count("Banded", "bandwidth", -1, zero=True)


def test_a_choice_is_one_of_a_few_words():
    check_choice("Implicit", "weak", "active", ("active", "inactive"))
    with pytest.raises(OptionError, match="Did you mean 'active'"):
        check_choice("Implicit", "weak", "activ", ("active", "inactive"))
    with pytest.raises(OptionTypeError, match="received 3"):
        check_choice("Implicit", "weak", 3, ("active", "inactive"))


def test_a_flag_is_true_or_false():
    check_flag("OneStep", "newton", False)
    with pytest.raises(OptionTypeError, match="True or False; received 1"):
        check_flag("OneStep", "newton", 1)
