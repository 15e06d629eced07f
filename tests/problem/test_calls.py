"""Where a user's function is called: its result is checked, torch's errors become advice, its own errors pass."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import FunctionError
from tacit.problem.calls import call_objective, call_rows, explained

U = torch.ones(2)


def test_a_scalar_and_a_vector_of_rows_pass():
    assert call_objective(lambda u: u.sum(), (U,)) == 2
    assert call_rows(lambda u: u, "equality", (U,), 2).tolist() == [1, 1]


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "received None"), (1.0, "1.0 (float)"), (U, r"shape (), for one sample"), (U.sum().double(), "float64")],
)
def test_an_objective_returns_a_scalar_tensor_of_the_dtype_of_u(value, words):
    with pytest.raises(FunctionError) as raised:
        call_objective(lambda u: value, (U,))
    assert words in str(raised.value) and str(raised.value).startswith("objective expects")


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("value", "hint"), [(U.sum(), "[None]"), (torch.ones(2, 2), ".flatten()"), ([1.0], "torch operations")]
)
def test_rows_are_a_vector_and_the_hint_says_how_to_make_one(value, hint):
    with pytest.raises(FunctionError, match="inequality expects") as raised:
        call_rows(lambda u: value, "inequality", (U,))
    assert hint in str(raised.value)


def test_the_number_of_rows_is_kept():
    with pytest.raises(FunctionError, match="3 before; received 2"):
        call_rows(lambda u: u, "equality", (U,), 3)


def test_what_torch_cannot_do_per_sample_becomes_advice_with_the_shapes():
    def decides(u):
        return u.sum() if u[0] > 0 else -u.sum()

    with pytest.raises(FunctionError, match=r"objective decides.*torch.where.*float32 tensor of shape \(2,\)"):
        torch.func.vmap(lambda u: call_objective(decides, (u,)))(torch.ones(3, 2))


def test_a_raise_of_the_users_own_passes_whole_even_in_words_of_torch():
    with pytest.raises(RuntimeError, match=r"^size mismatch, says the user$") as raised, explained("objective", (U,)):
        raise RuntimeError("size mismatch, says the user")
    assert not isinstance(raised.value, FunctionError)
