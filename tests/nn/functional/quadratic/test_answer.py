"""How answers are found: what an engine proposes is only a proposal."""

from __future__ import annotations

import pytest
import torch

from nn.functional.quadratic.cases import programs
from tacit.implicit import Implicit
from tacit.nn.functional.quadratic.answer import find_answer, pick_engine
from tacit.problem import Status
from tacit.solvers.external.least_distance import LeastDistance

BATCHED = (0,) * 6


def find(six: list[torch.Tensor], engine: str = "torch"):
    return find_answer(tuple(six), BATCHED, engine, Implicit(), 50)


def test_engines_agree():
    pytest.importorskip("daqp")
    six = programs(8, 2, 12, batch=5)
    one, other = find(six, "daqp"), find(six, "torch")
    torch.testing.assert_close(one.u, other.u, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(one.nu, other.nu, rtol=1e-11, atol=1e-11)


def test_an_engine_that_proposes_the_wrong_rows_is_not_believed(monkeypatch: pytest.MonkeyPatch):
    six = programs(5, 1, 8)
    truth = find(six)

    def liar(P: torch.Tensor, d: torch.Tensor) -> LeastDistance:
        b, q = d.shape
        return LeastDistance((torch.arange(q) % 2).double().expand(b, q), torch.ones(b).long(), torch.zeros(b).long())

    monkeypatch.setattr("tacit.nn.functional.quadratic.answer.least_distance", liar)
    found = find(six, "daqp")
    assert found.status.tolist() == [Status.CONVERGED] * 3
    torch.testing.assert_close(found.u, truth.u, rtol=1e-10, atol=1e-10)


def test_factors_solve_the_system_on_the_active_rows():
    six = programs(4, 1, 5)
    found = find(six)
    rows = torch.cat([six[2], torch.where(found.keep[:, 1:, None], six[4], 0.0)], 1)
    corner = torch.diag_embed((~found.keep).double())
    K = torch.cat([torch.cat([six[0], rows.mT], 2), torch.cat([rows, corner], 2)], 1)
    torch.testing.assert_close(found.factors.inverse(found.u), torch.linalg.inv(K), rtol=1e-9, atol=1e-10)


def test_mixed_programs_take_their_own_ways():
    six = programs(4, 1, 5)
    six[0][1] = 0.0  # linear
    six[1][1] = -six[4][1].sum(0)  # and bounded
    six[1][2, 0] = float("nan")
    found = find(six)
    assert found.status.tolist() == [Status.CONVERGED, Status.CONVERGED, Status.NONFINITE]
    assert found.u[2].isnan().all() and found.dead.tolist() == [False, False, True]
    assert found.residual[2] == float("inf")
    alone = find([t[:1] for t in six])
    torch.testing.assert_close(found.u[0], alone.u[0], rtol=0, atol=1e-12)


def test_the_engine_in_torch_serves_where_daqp_cannot():
    assert pick_engine("torch", torch.device("cpu")) == "torch"
    assert pick_engine(None, torch.device("meta")) == "torch"
