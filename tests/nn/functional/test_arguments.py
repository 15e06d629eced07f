"""Arguments of layers: what is accepted, and what is told to someone whose argument is not."""

from __future__ import annotations

import pytest
import torch
from torch.func import jvp

from tacit.errors import InputTypeError, InputValueError, OptionError, OptionTypeError
from tacit.nn.functional import arguments

X = torch.arange(24.0).reshape(2, 3, 4)


def test_dims_are_sorted_and_counted_from_the_front():
    assert arguments.dims_of(-1, 3) == (2,)
    assert arguments.dims_of([2, -3], 3) == (0, 2)


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("dim", "error", "words"),
    [
        ((), OptionError, "one or more dims"),
        (3, OptionError, "from -3 to 2 for 3 dims; received 3"),
        ((0, -3), OptionError, "each dim once"),
        ((0.5,), OptionTypeError, "integers"),
        ((True,), OptionTypeError, "integers"),
    ],
)
def test_dims_that_cannot_be_meant_are_refused(dim, error, words):
    with pytest.raises(error, match=words):
        arguments.dims_of(dim, 3)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (0, 1), (0, 1, 2)])
def test_rows_are_the_named_dims_and_can_be_restored(dims):
    rows = arguments.rows_of(X, dims)
    assert torch.equal(rows.sum(-1), X.sum(dims).flatten())
    assert torch.equal(arguments.restore(rows, X.shape, dims), X)


def test_a_row_of_no_numbers_is_refused_and_no_row_is_not():
    with pytest.raises(InputValueError, match="at least one number"):
        arguments.rows_of(torch.zeros(3, 0), (1,))
    assert arguments.rows_of(torch.zeros(0, 3), (1,)).shape == (0, 3)


@pytest.mark.parametrize(
    "shape", [(), (3,), (1,), (2, 1), (2, 3), (2, 3, 1), (1, 3, 1), (1, 1, 1)], ids=lambda shape: str(shape)
)
def test_a_tensor_is_taken_per_channel_or_per_sample(shape):
    value = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    got = arguments.per_row(value, X, (2,), "alpha")
    wide = value if value.ndim == 3 else value[..., None]
    assert torch.equal(got, wide.expand(2, 3, 1).reshape(6, 1))


def test_a_number_is_taken_for_every_row_in_the_dtype_of_x():
    assert torch.equal(arguments.per_row(2, X.double(), (2,), "alpha"), torch.full((6, 1), 2.0, dtype=torch.float64))


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0.0, OptionError, "alpha expects a positive, finite number; received 0.0"),
        (float("nan"), OptionError, "positive, finite"),
        (float("inf"), OptionError, "positive, finite"),
        (True, OptionTypeError, "received bool"),
        ("1", OptionTypeError, "received str"),
        (torch.ones(3, dtype=torch.int64), InputTypeError, "floating"),
        (torch.ones(4), InputValueError, r"broadcasts to \(2, 3\)"),
        (torch.ones(2, 3, 4), InputValueError, r"received shape \(2, 3, 4\)"),
        (torch.ones(3, device="meta"), InputTypeError, r"alpha\.to\(x\.device\)"),
    ],
)
def test_a_scale_that_cannot_be_meant_is_refused(value, error, words):
    with pytest.raises(error, match=words):
        arguments.per_row(value, X, (2,), "alpha")


@pytest.mark.untyped
def test_what_is_no_floating_tensor_is_refused_with_the_cure():
    with pytest.raises(InputTypeError, match=r"torch\.as_tensor"):
        arguments.need_floating([1.0])
    with pytest.raises(InputTypeError, match=r"x\.float\(\)"):
        arguments.need_floating(torch.ones(3, dtype=torch.int32))
    with pytest.raises(InputTypeError, match="floating dtype"):
        arguments.need_floating(torch.ones(3, dtype=torch.complex64))


def test_a_choice_is_one_of_the_known_or_told_the_nearest():
    assert arguments.choice("zero", ("zero", "uniform"), "singular") == "zero"
    with pytest.raises(OptionError, match="Did you mean 'uniform'"):
        arguments.choice("unifrom", ("zero", "uniform"), "singular")


def test_half_precision_is_worked_on_in_float32():
    kinds = [arguments.working_dtype(X.to(d)) for d in (torch.float16, torch.bfloat16, torch.float32, torch.float64)]
    assert kinds == [torch.float32, torch.float32, torch.float32, torch.float64]


def test_autocast_is_off_inside():
    with torch.autocast("cpu", torch.bfloat16), arguments.full_precision(X):
        assert (X[0] @ X[0].T).dtype == torch.float32


def test_forward_mode_is_noticed():
    seen = []
    jvp(lambda x: seen.append(arguments.in_forward_mode()) or x, (X,), (X,))
    assert seen == [True] and not arguments.in_forward_mode()
