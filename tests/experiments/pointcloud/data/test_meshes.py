"""Points of a mesh are uniform by area; files are read as they are found in the wild."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.pointcloud.data import forms
from tacit.experiments.pointcloud.data.meshes import read_cloud, read_npy, read_off, read_ply, sampled


@pytest.mark.parametrize("head", ["OFF\n4 1 0\n", "OFF4 1 0\n", "OFF 4 1 0\n", "# made\nOFF\n\n4 1 0\n"])
def test_off_is_read_with_its_counts_where_they_are_and_polygons_are_cut_into_fans(tmp_path, head):
    path = tmp_path / "a.off"
    path.write_text(head + "0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3 255 0 0\n")
    vertices, triangles = read_off(path)
    assert vertices.shape == (4, 3)
    assert triangles.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_a_face_may_have_a_colour_in_fractions(tmp_path):
    (tmp_path / "a.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n1 1 0\n3 0 1 2 0.5 0.5 1.0\n")
    assert read_off(tmp_path / "a.off")[1].tolist() == [[0, 1, 2]]


def test_a_cloud_far_from_the_origin_keeps_its_shape(tmp_path):
    shape = np.random.default_rng(0).normal(size=(20, 3))
    np.save(tmp_path / "a.npy", shape + np.array([5e5, 4e6, 100]))
    cloud = read_cloud(tmp_path / "a.npy", 50, np.random.default_rng(0)).numpy()
    np.testing.assert_allclose(cloud, shape - shape.mean(0), atol=1e-6)


def test_a_surface_is_sampled_by_area_and_evenly(tmp_path):
    # A square of area 1 at z = 0 and a triangle of area 2 at z = 1.
    vertices = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [2, 0, 1], [0, 2, 1.0]])
    triangles = np.array([[0, 1, 2], [0, 2, 3], [4, 5, 6]])
    cloud = sampled(vertices, triangles, 30000, np.random.default_rng(0), tmp_path)
    on_square = cloud[:, 2] == 0
    assert abs(on_square.mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / 30000)
    square, triangle = cloud[on_square, :2], cloud[~on_square, :2]
    assert square.min() >= 0 and square.max() <= 1 and np.abs(square.mean(0) - 0.5).max() < 0.02
    assert (triangle.sum(1) <= 2 + 1e-12).all() and np.abs(triangle.mean(0) - 2 / 3).max() < 0.02


@pytest.mark.parametrize("order", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_ply_is_read_in_its_three_forms(tmp_path, order):
    expected = forms.ply(tmp_path / "a.ply", 0, order=order)
    np.testing.assert_allclose(read_ply(tmp_path / "a.ply"), expected, rtol=1e-6)


def test_further_columns_of_an_array_are_left_out(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12).reshape(2, 6))
    assert read_npy(tmp_path / "a.npy").tolist() == [[0, 1, 2], [6, 7, 8]]


def test_a_large_cloud_is_thinned_without_repeats_and_a_small_one_kept(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(300.0).reshape(100, 3))
    few = read_cloud(tmp_path / "a.npy", 10, np.random.default_rng(0))
    assert len(few.unique(dim=0)) == 10
    assert len(read_cloud(tmp_path / "a.npy", 1000, np.random.default_rng(0))) == 100
