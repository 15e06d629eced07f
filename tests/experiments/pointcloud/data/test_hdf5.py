"""The HDF5 folder holds what was written."""

from __future__ import annotations

import pytest
import torch

from experiments.pointcloud.data import forms
from tacit.experiments.pointcloud.data.clouds import normalised
from tacit.experiments.pointcloud.data.hdf5 import read_hdf5

pytest.importorskip("h5py")


def test_points_and_labels_are_those_of_the_file(tmp_path):
    points, labels = map(torch.from_numpy, forms.arrays())
    for split in read_hdf5(forms.write_hdf5(tmp_path)):
        torch.testing.assert_close(split.points, normalised(points)[0])
        assert torch.equal(split.labels, labels)
        assert split.counts is None
