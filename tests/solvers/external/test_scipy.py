from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, VALLEY, bind, doubles
from tacit.errors import OptionError
from tacit.problem import Status
from tacit.solvers.external import SciPy


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-exact", "trust-constr"])
def test_every_method_is_polished(method: str) -> None:
    x, start = doubles((10.0, 1.0)), doubles((-1.2, 1.0))
    found = SciPy(method=method).solve(bind(VALLEY, x, start), start)
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles((1.0, 1.0)), rtol=0, atol=1e-12)


def test_single_precision_stays_single() -> None:
    x = torch.tensor([[3.0, 4.0]])
    found = SciPy().solve(bind(BALL, x, 0 * x), 0 * x)
    assert found.u.dtype == torch.float32 and found.status.item() == Status.CONVERGED


def test_methods_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OptionError, match="Did you mean 'SLSQP'"):
        SciPy(method="SLSPQ")
    x = doubles((3.0, 4.0))
    with pytest.raises(OptionError, match="SLSQP"):
        SciPy(method="BFGS").solve(bind(BALL, x, x), x)
