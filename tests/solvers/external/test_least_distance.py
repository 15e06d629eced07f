from __future__ import annotations

import importlib.util

import pytest
import torch

from tacit.errors import MissingDependencyError
from tacit.problem import Status
from tacit.solvers.external import least_distance as module
from tacit.solvers.external.least_distance import least_distance

needed = pytest.mark.skipif(importlib.util.find_spec("daqp") is None, reason="daqp is not installed")


@needed
@pytest.mark.parametrize("threads", [1, 3])
def test_the_conditions_hold(threads: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_WORTH_A_THREAD", 0)
    generator = torch.Generator().manual_seed(0)
    M = torch.randn(6, 7, 4, generator=generator, dtype=torch.float64)
    d = torch.rand(6, 7, generator=generator, dtype=torch.float64) - 0.5
    found = least_distance(M, d, threads=threads)
    done = found.status == Status.CONVERGED
    assert bool(done.any())
    z = -(M.mT @ found.lam[:, :, None])[:, :, 0]
    slack = d - (M @ z[:, :, None])[:, :, 0]
    assert (found.lam >= 0).all() and (slack[done] >= -1e-9).all()
    assert ((found.lam * slack)[done]).abs().max() < 1e-9


@needed
def test_contradictions_are_infeasible_and_one_matrix_serves_all():
    M = torch.tensor([[[1.0], [-1.0]]], dtype=torch.float64)
    d = torch.tensor([[-1.0, -1.0], [-1.0, 3.0]], dtype=torch.float64)
    found = least_distance(M, d)
    assert found.status.tolist() == [Status.INFEASIBLE, Status.CONVERGED]
    torch.testing.assert_close(found.lam[1], torch.tensor([1.0, 0.0], dtype=torch.float64))


def test_absence_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "daqp_is_installed", lambda: False)
    with pytest.raises(MissingDependencyError, match="pip install"):
        least_distance(torch.zeros(1, 1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
