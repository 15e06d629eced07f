"""Metrics equal torchmetrics' and the definition."""

from __future__ import annotations

import pytest
import torch

from tacit.experiments.common.metrics import average_precision, mean_average_precision, top_k


def cases():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(200, 7, generator=generator).softmax(1)
    labels = torch.randint(7, (200,), generator=generator)
    return {"distinct": (scores, labels), "ties": ((scores * 20).round() / 20, labels)}


@pytest.mark.parametrize("case", ["distinct", "ties"])
def test_average_precision_is_that_of_torchmetrics(case):
    functional = pytest.importorskip("torchmetrics.functional.classification")
    scores, labels = cases()[case]
    expected = functional.multiclass_average_precision(scores, labels, num_classes=7, average=None)
    assert torch.allclose(average_precision(scores, labels).float(), expected, atol=1e-6)


def test_average_precision_is_the_sum_of_its_definition():
    scores, labels = torch.tensor([[0.9], [0.8], [0.8], [0.1]]), torch.tensor([0, 0, 1, 0])
    # Recall 1/3 at precision 1, then 2/3 at 2/3 (two of equal score), then 1 at 3/4.
    assert average_precision(scores, labels).item() == pytest.approx(1 / 3 * 1 + 1 / 3 * 2 / 3 + 1 / 3 * 3 / 4)


def test_a_class_without_a_row_does_not_enter_the_mean():
    scores, labels = torch.eye(3)[:2], torch.tensor([0, 1])
    assert average_precision(scores, labels).isnan().tolist() == [False, False, True]
    assert mean_average_precision(scores, labels) == 1.0


def test_top_k_counts_a_label_among_the_k_best():
    scores, labels = torch.tensor([[3.0, 2.0, 1.0]] * 4), torch.tensor([0, 1, 2, 2])
    assert [top_k(scores, labels, k) for k in (1, 2, 3, 9)] == [0.25, 0.5, 1.0, 1.0]
