"""Calibration error against a loop over predictions, and where it is known."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.experiments.image.calibration import reliability


def scores(n: int = 3000, classes: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(0)
    return 2 * torch.randn(n, classes, generator=made), torch.randint(classes, (n,), generator=made)


def test_the_error_equals_a_loop_over_predictions():
    given, labels = scores()
    bins: dict[int, list[tuple[float, bool]]] = {}
    for row, label in zip(given.double().softmax(1).tolist(), labels.tolist()):
        confidence = max(row)
        bins.setdefault(math.ceil(confidence * 15) - 1, []).append((confidence, row.index(confidence) == label))
    by_hand = sum(abs(sum(c for c, _ in some) - sum(right for _, right in some)) for some in bins.values()) / len(given)
    found = reliability(given, labels)
    assert found.error() == pytest.approx(by_hand, abs=1e-12)
    assert {i: n for i, n in enumerate(found.count.tolist()) if n} == {i: len(some) for i, some in bins.items()}


def test_labels_drawn_from_the_probabilities_are_calibrated():
    given, _ = scores(200_000)
    labels = torch.multinomial(given.softmax(1), 1, generator=torch.Generator().manual_seed(1))[:, 0]
    # The mean of 15 absolute deviations, each of about sqrt(0.25 / n_b): far below a real miscalibration.
    assert reliability(given, labels).error() < 0.006
    assert reliability(3 * given, labels).error() > 0.1


def test_certain_and_wrong_is_as_bad_as_it_gets():
    given = torch.tensor([[100.0, 0.0]] * 4)
    assert reliability(given, torch.ones(4, dtype=torch.long)).error() == pytest.approx(1)
    assert reliability(given, torch.zeros(4, dtype=torch.long)).error() == pytest.approx(0)


def test_empty_bins_count_nothing():
    found = reliability(torch.tensor([[100.0, 0.0]]), torch.tensor([0]))
    assert found.count.tolist() == [0] * 14 + [1]
    assert found.accuracy.isfinite().all()
