"""The tests see a wrong shape where it is passed, and the switch that turns that off works both ways."""

from __future__ import annotations

import jaxtyping
import pytest
import torch

from tacit.shapes import Float, Tensor
from typecheck import ENABLED, check


@jaxtyping.jaxtyped(typechecker=check)
def scaled(x: Float[Tensor, "b m"], by: float) -> Float[Tensor, m]:
    return by * x.sum(0)


def test_a_wrong_shape_or_dtype_is_caught():
    with pytest.raises(jaxtyping.TypeCheckError):
        scaled(torch.ones(3), 2.0)
    with pytest.raises(jaxtyping.TypeCheckError):
        scaled(torch.ones(3, 2, dtype=torch.int64), 2.0)


def test_an_integer_passes_for_a_float():
    assert scaled(torch.ones(3, 2), 2).tolist() == [6.0, 6.0]


@pytest.mark.untyped
def test_nothing_is_checked_in_a_test_marked_untyped():
    assert scaled(torch.ones(3), 2.0).item() == 6.0


@pytest.mark.compile
def test_a_checked_function_is_traced_whole_in_a_test_marked_compile():
    traced = torch.compile(scaled, fullgraph=True, backend="eager")
    assert traced(torch.ones(3, 2), 2.0).tolist() == [6.0, 6.0]


@pytest.mark.skipif(not ENABLED, reason="TACIT_TYPES=0")
def test_a_checked_function_becomes_an_operator_of_torch():
    @jaxtyping.jaxtyped(typechecker=check)
    def doubled(x: Tensor) -> Tensor:
        return 2 * x

    operator = torch.library.custom_op("tacit_house::doubled", mutates_args=())(doubled)
    assert operator(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.skipif(not ENABLED, reason="TACIT_TYPES=0")
def test_the_library_itself_is_checked():
    from tacit.errors import nearest

    with pytest.raises(jaxtyping.TypeCheckError):
        nearest("name", known=3)
