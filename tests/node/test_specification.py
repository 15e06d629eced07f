"""What a call fixes before any value is known."""

from __future__ import annotations

import torch

import tacit
from tacit.node.binding import bind
from tacit.node.specification import Rule

from .cases import ball, inputs

X = inputs()


def rule(**options) -> Rule:
    return Rule(bind(ball, (X,), 0), 0, 1, torch.Size([3]), tacit.Implicit(**options))


def test_unknowns_and_rows_together_decide_whether_k_is_formed():
    assert not rule(dense_limit=4).matrix_free
    assert rule(dense_limit=3).matrix_free
    assert rule(linear_solver="matrix-free").matrix_free


def test_the_instance_has_the_shape_of_u_and_the_rows_that_were_counted():
    instance = rule().instance((2 * X,), X)
    assert (instance.m, instance.p, instance.q, instance.batch) == (3, 0, 1, 4)
    torch.testing.assert_close(instance.objective(X), 0.5 * X.square().sum(1))
