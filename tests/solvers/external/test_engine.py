"""Every engine gives the same answers as the solvers here, with the same honesty; absent ones say how to get them."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from solvers.cases import BALL, SIMPLEX, VALLEY, bind, doubles, onto_simplex
from tacit.errors import MissingDependencyError
from tacit.problem import Status
from tacit.solvers import Solver
from tacit.solvers.external import Clarabel, Daqp, Ipopt, SciPy

PACKAGES = {Clarabel: "clarabel", Daqp: "daqp", Ipopt: "ipyopt", SciPy: "scipy"}
GENERAL = (Ipopt, SciPy)


def present(engine: type[Solver]) -> bool:
    return importlib.util.find_spec(PACKAGES[engine]) is not None


def make(engine: type[Solver]) -> Solver:
    if not present(engine):
        pytest.skip(f"{PACKAGES[engine]} is not installed")
    return engine()


@pytest.mark.parametrize("engine", PACKAGES)
def test_an_absent_engine_says_how_to_install_it(engine: type[Solver], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "scipy.optimize" if engine is SciPy else PACKAGES[engine], None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        engine()


@pytest.mark.parametrize("engine", PACKAGES)
def test_projections_are_exact_and_a_spoiled_element_is_alone(engine: type[Solver]) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    answer = onto_simplex(x)
    x[2, 0] = float("nan")
    start = torch.full_like(x, 0.25)
    found = make(engine).solve(bind(SIMPLEX, x, start), start)
    others = [0, 1, 3, 4]
    assert found.status.tolist() == [Status.NONFINITE if i == 2 else Status.CONVERGED for i in range(5)]
    torch.testing.assert_close(found.u[others], answer[others], rtol=1e-12, atol=1e-12)
    assert (found.lam[others, 1:] <= 0).all()


@pytest.mark.parametrize("engine", GENERAL)
def test_curved_problems_are_polished_to_rounding(engine: type[Solver]) -> None:
    x = doubles((3.0, 4.0), (0.1, 0.2))
    found = make(engine).solve(bind(BALL, x, 0 * x), 0 * x)
    assert (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, doubles((0.6, 0.8), (0.1, 0.2)), rtol=0, atol=1e-13)
    torch.testing.assert_close(found.lam, doubles((-2.0,), (0.0,)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", GENERAL)
def test_a_search_cut_short_does_not_pass_for_an_answer(engine: type[Solver]) -> None:
    make(engine)
    x, start = doubles((100.0, 1.0)), doubles((-1.2, 1.0))
    assert engine(max_iter=1).solve(bind(VALLEY, x, start), start).status.item() != Status.CONVERGED
