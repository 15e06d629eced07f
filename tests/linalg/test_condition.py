from __future__ import annotations

import torch

from tacit.linalg.condition import inverse_norm, spread_vectors


def test_the_estimate_is_a_lower_bound_within_a_small_factor() -> None:
    K = torch.randn(50, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inverse = torch.linalg.inv(K)
    estimate = inverse_norm(lambda v: inverse @ v, lambda v: inverse.mT @ v, K[:, 0])
    truth = inverse.abs().sum(-2).amax(-1)
    assert (estimate <= truth * (1 + 1e-12)).all()
    assert (estimate > truth / 3).all()


def test_an_overflow_counts_as_infinite() -> None:
    assert inverse_norm(lambda v: v * float("nan"), lambda v: v, torch.ones(1, 3)).item() == float("inf")


def test_the_spread_vectors_agree_between_dtypes_and_repeat_nothing() -> None:
    v = spread_vectors(1000, torch.empty(0, dtype=torch.float64))
    assert torch.equal(v.float(), spread_vectors(1000, torch.empty(0)))
    assert v[:, 0].unique().numel() == 1000
    assert (v[:, 1] < 0).any()
    assert (v[:, 1] > 0).any()
