from __future__ import annotations

import pytest
import torch

from solvers.cases import BALL, VALLEY, bind, doubles
from tacit.errors import OptionError
from tacit.solvers import InteriorPoint, Newton, Quadratic, trace


def test_a_record_follows_every_sample_until_it_is_done() -> None:
    x, start = doubles((100.0, 1.0), (1.0, 1.0)), doubles((-1.2, 1.0), (1.0, 1.0))
    record = trace(bind(VALLEY, x, start), start, Newton())
    steps = record.found.iterations
    assert record.objective.shape == record.residual.shape == record.step.shape
    assert record.objective[0, 0].item() == pytest.approx(24.2)
    for sample in range(2):
        seen = record.objective[:, sample].isfinite()
        assert seen.sum().item() == steps[sample].item() + 1
    assert torch.isnan(record.objective[-1, 1])


def test_a_record_can_be_drawn() -> None:
    x = doubles((3.0, 4.0), (0.5, 0.5))
    record = trace(bind(BALL, x, 0 * x), 0 * x, InteriorPoint())
    assert record.plot().axes and record.plot(0).axes[0].get_xlabel() == "iteration"


def test_a_solver_without_iterations_is_refused() -> None:
    x = doubles((3.0, 4.0))
    with pytest.raises(OptionError, match="callback"):
        trace(bind(BALL, x, x), x, Quadratic())
