"""Arguments of a quadratic program: types and shapes are named, what is left out is completed."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import InputTypeError, InputValueError
from tacit.nn.functional.quadratic.arguments import declared, read_arguments

EYE, ONES = torch.eye(2), torch.ones(2)


def test_what_is_left_out_is_zero_or_has_no_rows():
    read = read_arguments((None, ONES, None, None, EYE[:1], ONES[:1]))
    assert [tuple(t.shape) for t in read.tensors] == [(2, 2), (1, 2), (0, 2), (0,), (1, 2), (1,)]
    assert (read.n, read.p, read.q, read.batch, read.single) == (2, 0, 1, 1, True)
    assert read.dims == (None, 0, None, None, None, None)


def test_a_batch_axis_is_seen_by_the_rank():
    read = read_arguments((EYE, ONES.expand(5, 2), None, None, EYE.expand(5, 2, 2), ONES))
    assert (read.batch, read.single, read.dims) == (5, False, (None, 0, None, None, 0, None))


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("six", "error", "words"),
    [
        ((None,) * 6, InputValueError, "received neither"),
        ((EYE, None, EYE, None, None, None), InputValueError, "A and b come together"),
        ((EYE, None, None, None, None, ONES), InputValueError, "G and h come together"),
        ((EYE, torch.ones(3), None, None, None, None), InputValueError, "q expects shape"),
        ((torch.ones(2, 3), None, None, None, None, None), InputValueError, "Q expects shape"),
        ((EYE, ONES.double(), None, None, None, None), InputTypeError, "dtype"),
        (([[1.0]], None, None, None, None, None), InputTypeError, "tensor"),
        ((EYE.long(), None, None, None, None, None), InputTypeError, "float"),
        ((EYE.expand(3, 2, 2), ONES.expand(4, 2), None, None, None, None), InputValueError, "one batch size"),
        ((EYE.expand(1, 1, 2, 2), None, None, None, None, None), InputValueError, "batch axes"),
    ],
)
def test_what_does_not_fit_is_named(six: tuple[object, ...], error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        read_arguments(six)


def test_the_declaration_has_the_rows_it_is_asked_for():
    assert declared(0, 0).equality is None and declared(0, 0).inequality is None
    six = (EYE, ONES, EYE[:1], ONES[:1], EYE, ONES)
    problem, u = declared(1, 2), torch.tensor([1.0, 3.0])
    assert problem.objective(*six, u) == 9.0
    assert problem.equality(*six, u).tolist() == [0.0] and problem.inequality(*six, u).tolist() == [0.0, 2.0]
