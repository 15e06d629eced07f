"""Shards are joined in order and have to agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.pointcloud.data import forms
from tacit.experiments.common.errors import DataError
from tacit.experiments.pointcloud.data.npz import read_npz, read_shards


def test_shards_are_joined_in_order_of_their_names_wherever_they_lie(tmp_path):
    forms.write_shards(tmp_path, count=3)
    (tmp_path / "aside").mkdir()
    (tmp_path / "train-001.npz").rename(tmp_path / "aside" / "train-001.npz")
    train, test = read_shards(tmp_path)
    assert len(train) == len(test) == 18
    torch.testing.assert_close(train.points, test.points)


def test_half_precision_stays_half(tmp_path):
    points = forms.arrays()[0].astype("f2")
    train, _ = read_npz(forms.write_npz(tmp_path / "data.npz", train_points=points))
    assert train.points.dtype == torch.float16


def test_shards_that_differ_in_their_classes_are_refused(tmp_path):
    forms.write_shards(tmp_path)
    points, labels = forms.arrays()
    np.savez(tmp_path / "train-001.npz", points=points, labels=labels, class_names=np.array(["other", "stick"]))
    with pytest.raises(DataError, match=r"train-001\.npz and .*train-000\.npz differ"):
        read_shards(tmp_path)


def test_training_and_test_shards_of_different_classes_are_refused(tmp_path):
    forms.write_shards(tmp_path, count=1)
    points, labels = forms.arrays()
    np.savez(tmp_path / "test-000.npz", points=points, labels=labels, class_names=np.array(["stick", "cube"]))
    with pytest.raises(DataError, match=r"train-\*\.npz and test-\*\.npz differ"):
        read_shards(tmp_path)


def test_numbers_of_another_byte_order_are_read(tmp_path):
    points, labels = forms.arrays()
    path = forms.write_npz(tmp_path / "a.npz", train_points=points.astype(">f4"), train_labels=labels.astype(">i8"))
    one, other = read_npz(path)
    assert torch.equal(one.points, other.points) and torch.equal(one.labels, other.labels)


def test_a_folder_without_its_test_shards_is_refused(tmp_path):
    forms.write_shards(tmp_path)
    for path in tmp_path.glob("test-*"):
        path.unlink()
    with pytest.raises(DataError, match=r"has no test-\*\.npz"):
        read_shards(tmp_path)
