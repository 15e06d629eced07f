"""The tools of the contract: what is fed to a layer and what is compared."""

from __future__ import annotations

import warnings
from unittest import SkipTest

import pytest
import torch

from tacit.errors import GradientWarning
from tacit.testing.harness import Harness, quiet


class Doubled(Harness):
    in_dims = (0, None)

    def build(self):
        return torch.nn.Linear(2, 2)

    def inputs(self):
        return torch.ones(3, 2), 4

    def call(self, layer, x, k):
        return k * x.square()


def test_layer_and_inputs_come_in_the_asked_dtype_and_other_things_pass_through():
    layer, (x, k) = Doubled().ready(grad=True)
    assert layer.weight.dtype == x.dtype == torch.float64
    assert x.requires_grad and k == 4


def test_an_answer_is_y_and_one_gradient_an_input():
    harness = Doubled()
    y, (in_x, in_k) = harness.answer(*harness.ready())
    torch.testing.assert_close(y, torch.full((3, 2), 4.0, dtype=torch.float64))
    torch.testing.assert_close(in_x, 8 * harness.cotangent(y))
    assert in_k is None


def test_a_sample_is_pulled_back_by_the_same_vector_wherever_it_stands():
    y = torch.zeros(5, 3)
    assert torch.equal(Harness.cotangent(y)[2:3], Harness.cotangent(y[:1]))
    assert Harness.cotangent(y[:0]).shape == (0, 3)


def test_a_difference_is_named():
    with pytest.raises(AssertionError, match="left and right differ"):
        Harness().assert_equal(torch.zeros(2), torch.ones(2), "left and right")


def test_what_is_not_promised_is_skipped():
    with pytest.raises(SkipTest, match="why"):
        Harness.only_if(False, "why")
    Harness.only_if("fullgraph", "why")


def test_warnings_about_samples_are_quiet_where_asked():
    with quiet():
        warnings.warn("sample 3", GradientWarning, stacklevel=1)
