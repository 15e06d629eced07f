"""Inputs: the batch comes to axis 0, shared ones are anything, and what cannot be used is refused by position."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import InputTypeError, InputValueError
from tacit.problem.inputs import describe, flatten_samples, is_differentiable, read_inputs, read_unknown


def test_the_batch_moves_to_axis_0_and_shared_inputs_stay():
    x, w = torch.ones(3, 4, 5), torch.ones(7)
    inputs = read_inputs((x, w, 2), (-1, None, None))
    assert [getattr(v, "shape", v) for v in inputs.values] == [(5, 3, 4), (7,), 2]
    assert inputs.in_dims == (0, None, None) and inputs.batch == 5 and inputs.floating == (0, 1)


def test_with_shared_inputs_only_there_is_no_batch_yet():
    assert read_inputs((torch.ones(2), "word"), None).batch is None


def test_what_has_a_derivative():
    assert is_differentiable(torch.ones(1)) and is_differentiable(torch.ones(1, dtype=torch.bfloat16))
    assert not any(map(is_differentiable, (torch.ones(1).int(), 1.0, None, torch.ones(1).to_sparse())))


def test_integers_may_be_batched():
    assert read_inputs((torch.arange(3),)).batch == 3


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, InputTypeError),
        ([1.0], InputTypeError),
        (torch.ones(2).half(), InputTypeError),
        (torch.ones(2, dtype=torch.complex64), InputTypeError),
        (torch.ones(2, 2).to_sparse(), InputTypeError),
        (torch.ones(()), InputValueError),
        (torch.ones(2, 0), InputValueError),
    ],
)
def test_what_is_no_batch_of_real_numbers_is_refused_by_position(value, kind):
    with pytest.raises(kind, match=r"input 1 expects.*received"):
        read_inputs((torch.ones(2, 3), value))


def test_inputs_on_two_devices_are_refused():
    with pytest.raises(InputTypeError, match=r"input 1.*on meta.*Convert"):
        read_inputs((torch.ones(2, 3), torch.ones(2, 3, device="meta")))


def test_an_unknown_has_the_batch_dtype_and_device_of_the_inputs():
    inputs = read_inputs((torch.ones(2, 3),))
    assert read_unknown(torch.ones(2), inputs, "start").shape == (2,)
    for wrong, kind in (
        (torch.ones(3), InputValueError),
        (torch.ones(2).double(), InputTypeError),
        (torch.ones(2).int(), InputTypeError),
        (torch.ones(2, device="meta"), InputTypeError),
        (torch.ones(()), InputValueError),
        (torch.ones(2, 0), InputValueError),
    ):
        with pytest.raises(kind, match=r"^start expects"):
            read_unknown(wrong, inputs, "start")


def test_a_description_is_short_and_exact():
    assert describe(torch.ones(2, 3)) == "a float32 tensor of shape (2, 3) on cpu"
    assert [describe(v) for v in (None, 1, [1])] == ["None", "1 (int)", "an object of type list"]


def test_samples_are_flattened_to_rows():
    assert flatten_samples(torch.ones(0, 2, 3)).shape == (0, 6)
    assert flatten_samples(torch.ones(2)).shape == (2, 1)
