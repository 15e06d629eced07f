"""One warning a backward pass, naming samples and meaning."""

from __future__ import annotations

import warnings

import pytest
import torch

from tacit import Flag, Implicit
from tacit.errors import GradientError, GradientWarning
from tacit.node.warn import list_samples, report_flags


def test_nothing_unusual_nothing_said():
    report_flags(torch.zeros(3, dtype=torch.int64), Implicit())


def test_all_flags_come_in_one_warning():
    flags = torch.tensor([0, int(Flag.SINGULAR | Flag.DEPENDENT), int(Flag.SINGULAR)])
    with pytest.warns(GradientWarning) as caught:
        report_flags(flags, Implicit())
    text = str(caught[0].message)
    assert len(caught) == 1 and text.startswith("2 of 3 samples")
    assert "SINGULAR, samples 1, 2:" in text and "DEPENDENT, samples 1:" in text


def test_a_policy_may_ignore_or_raise():
    flags = torch.tensor([int(Flag.WEAKLY_ACTIVE)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_flags(flags, Implicit(on_failure="ignore"))
    with pytest.raises(GradientError, match="WEAKLY_ACTIVE"):
        report_flags(flags, Implicit(on_failure="raise"))


def test_singular_may_raise_by_its_own_policy():
    with pytest.raises(GradientError, match=r"samples 1: the KKT matrix is singular.*singular='raise'"):
        report_flags(torch.tensor([0, 1]), Implicit(singular="raise", on_failure="ignore"))


def test_long_lists_are_cut():
    assert list_samples([1, 2]) == "1, 2"
    assert list_samples(list(range(20))) == "0, 1, 2, 3, 4, 5, 6, 7, ... (20 in all)"
