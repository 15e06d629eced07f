from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, bind, doubles
from tacit.errors import OptionTypeError
from tacit.problem import Status
from tacit.solvers import ClosedForm


def test_a_right_formula_converges_and_a_wrong_one_does_not() -> None:
    x = doubles((3.0, 4.0), (0.1, 0.2), (float("nan"), 1.0))
    right = ClosedForm(formula=lambda x: x / x.norm().clamp(min=1.0)).solve(bind(BALL, x, x), x)
    assert right.status.tolist() == [Status.CONVERGED, Status.CONVERGED, Status.NONFINITE]
    torch.testing.assert_close(right.lam[:2], doubles((-2.0,), (0.0,)), rtol=0, atol=1e-12)
    wrong = ClosedForm(formula=lambda x: 0.5 * x).solve(bind(BALL, x, x), x)
    assert wrong.status.tolist() == [Status.STALLED, Status.STALLED, Status.NONFINITE]


def test_a_formula_may_be_trusted_without_a_check() -> None:
    x = doubles((3.0, 4.0))
    found = ClosedForm(formula=lambda x: torch.zeros_like(x), check=False).solve(bind(BALL, x, x), x)
    assert found.status.item() == Status.CONVERGED and found.residual.item() > 0.1


@pytest.mark.untyped
def test_a_formula_must_be_callable() -> None:
    with pytest.raises(OptionTypeError, match="formula"):
        ClosedForm(formula="x / norm")
