"""Before a gradient is taken: healthy numbers in the place of broken ones, flags told once, refusals by policy."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.node.binding import bind
from tacit.node.examine import examine
from tacit.node.locate import Search, locate
from tacit.node.specification import Rule

from .cases import ball, inputs

X = inputs()
Y = X / X.norm(dim=1, keepdim=True).clamp_min(1.0)


def looked_at(x: torch.Tensor, y: torch.Tensor, *, refuse: bool = True, told: list | None = None):
    bound = bind(ball, (x,), 0)
    found = locate(bound, Search(y=y))
    rule = Rule(found.bound, found.p, found.q, y.shape[1:], tacit.Implicit())
    note = (lambda flags, policy: told.append(flags.tolist())) if told is not None else None
    return examine(rule, (x,), found.y, found.lam, found.state, found.failed, refuse=refuse, explicit=True, report=note)


def test_a_regular_batch_is_linearised_once_and_nothing_is_said():
    told: list = []
    seen = looked_at(X, Y, told=told)
    assert told == [[0, 0, 0, 0]] and seen.regular.all() and not seen.hopeless
    assert seen.inverse.shape == (4, 4, 4)


def test_a_sample_of_nan_gets_the_numbers_of_a_healthy_one_and_no_part():
    x = X.clone()
    x[2, 1] = torch.nan
    told: list = []
    seen = looked_at(x, Y, told=told)
    assert told[0][2] == tacit.Flag.NONFINITE and told[0][:2] == [0, 0]
    assert seen.regular.tolist() == [True, True, False, True]
    assert seen.tensors[0].isfinite().all()
    clean = looked_at(X, Y, told=[])
    assert torch.equal(seen.inverse[[0, 1, 3]], clean.inverse[[0, 1, 3]])


def test_where_all_are_broken_there_is_no_hope():
    assert looked_at(torch.full_like(X, torch.nan), Y, told=[]).hopeless


def test_a_y_that_is_not_stationary_is_refused_where_that_is_asked():
    y = Y.clone()
    y[0] += 0.1
    told: list = []
    assert not looked_at(X, y, refuse=True, told=told).regular[0]
    assert told[0][0] & tacit.Flag.NOT_STATIONARY
    assert looked_at(X, y, refuse=False, told=[]).regular[0]


def test_flags_are_warned_about_by_default():
    with pytest.warns(tacit.errors.GradientWarning, match="NOT_STATIONARY, samples 0"):
        looked_at(X, Y + torch.tensor([0.1, 0.0, 0.0]), refuse=True)
