"""Where y comes from: a solver of ours, any callable, a method of the node, or the caller; nobody's word is taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tacit
from tacit.node.binding import bind
from tacit.node.locate import Search, locate

from .cases import ball, inputs

X = inputs()
Y = X / X.norm(dim=1, keepdim=True).clamp_min(1.0)


def find(**search):
    return locate(bind(ball, (X,), 0), Search(**search))


@pytest.mark.parametrize(
    "search",
    [
        {"start": X},
        {"start": lambda x: 0 * x},
        {"solver": lambda x: Y},
        {"solver": lambda x: Y.numpy()},
        {"solver": lambda x: Y.numpy().astype(np.float32).astype(np.float64) * 0 + Y.numpy()},
        {"y": Y},
    ],
    ids=["start", "start function", "callable", "numpy", "copy", "given"],
)
def test_whoever_finds_it_the_record_is_the_same(search):
    found = find(**search)
    expected = find(y=Y)
    torch.testing.assert_close(found.y, Y, rtol=0, atol=1e-7)
    torch.testing.assert_close(found.lam, expected.lam, rtol=0, atol=1e-6)
    assert torch.equal(found.state, expected.state)
    assert not found.failed.any() and (found.p, found.q) == (0, 1)


def test_a_callable_gets_the_start_only_if_it_takes_it():
    seen = []

    def takes(x, *, start):
        seen.append(start)
        return Y

    find(start=2 * X, solver=takes)
    assert torch.equal(seen[0], 2 * X)
    find(start=2 * X, solver=lambda x: Y)


def test_a_callable_sees_the_batch_first_and_shared_inputs_as_they_are():
    problem = tacit.Problem(lambda x, w, u: (u - w * x).square().sum())
    seen = []

    def solver(x, w):
        seen.append((x.shape, w.shape, x.requires_grad))
        return w * x

    locate(bind(problem, (X.mT.requires_grad_(), torch.ones(3).double()), (1, None)), Search(solver=solver))
    assert seen == [((4, 3), (3,), False)]


def test_an_answer_in_another_precision_is_taken_to_that_of_the_inputs():
    assert find(solver=lambda x: Y.float()).y.dtype == torch.float64


def test_an_answer_that_is_none_is_stalled_and_one_of_nan_not_finite():
    y = Y.clone()
    y[0] += 0.1
    y[1] = torch.nan
    found = find(y=y)
    assert found.status.tolist() == [int(tacit.Status.STALLED), int(tacit.Status.NONFINITE), 0, 0]
    with pytest.warns(tacit.errors.SolverWarning, match="STALLED: samples 0; NONFINITE: samples 1"):
        find(solver=lambda x: y)


def test_failures_raise_where_that_is_asked():
    with pytest.raises(tacit.errors.ConvergenceError, match="4 of 4 samples"):
        find(solver=lambda x: Y + 1, on_failure="raise")


def test_what_comes_back_is_not_the_solvers_own_storage():
    mine = Y.clone()
    found = find(solver=lambda x: mine)
    mine.zero_()
    torch.testing.assert_close(found.y, Y)
