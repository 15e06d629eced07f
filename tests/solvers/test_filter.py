from __future__ import annotations

from dataclasses import replace

import torch

from solvers.cases import BALL, bind, doubles
from tacit.problem import Problem
from tacit.solvers import InteriorPoint
from tacit.solvers.barrier import new_direction
from tacit.solvers.filter import cleared, model_at, search

CURVE = Problem(lambda x, u: (x * u).sum(), lambda x, u: u.square().sum()[None] - 1)


def test_a_step_that_a_filter_entry_dominates_is_refused() -> None:
    x, start = doubles((1.0, 1.0)), doubles((0.9, -0.1))
    instance = bind(CURVE, x, start)
    state = InteriorPoint().begin(instance, start)
    at, f = model_at(instance, state)
    direction = new_direction(at, state.mu, state.delta)
    moved, lost = search(instance, state, at, f, direction)
    assert not lost.item() and not torch.equal(moved.u, state.u)
    everything = torch.full_like(state.filter, -1e9)
    blocked, lost = search(instance, replace(state, filter=everything), at, f, direction)
    assert lost.item() and torch.equal(blocked.u, state.u)


def test_an_accepted_step_reduces_violation_or_barrier_function() -> None:
    x, start = doubles((3.0, 4.0), (0.5, 0.1), (-2.0, 9.0)), doubles((2.0, 2.0), (0.0, 0.0), (5.0, 5.0))
    instance = bind(BALL, x, start)
    state = InteriorPoint().begin(instance, start)
    at, f = model_at(instance, state)
    moved, lost = search(instance, state, at, f, new_direction(at, state.mu, state.delta))
    after, g = model_at(instance, moved)
    theta = at.primal.abs().sum(1), after.primal.abs().sum(1)
    phi = f - state.mu * state.s.log().sum(1), g - state.mu * moved.s.log().sum(1)
    assert not lost.any()
    assert ((theta[1] < theta[0]) | (phi[1] < phi[0])).all()
    assert (moved.s > 0).all() and (moved.z > 0).all()


def test_clearing_forgets_every_entry() -> None:
    x = doubles((3.0, 4.0))
    state = InteriorPoint().begin(bind(BALL, x, x), x)
    used = replace(state, filter=torch.zeros_like(state.filter), entries=state.entries + 5)
    assert cleared(used).filter.isinf().all() and cleared(used).entries.item() == 0
