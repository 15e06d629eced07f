"""Every form is told from its files, and each of two dozen ways to be broken has its clear error."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.pointcloud.data import forms
from tacit.experiments.common.errors import DataError
from tacit.experiments.pointcloud.data.source import open_data


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TACIT_DATA", raising=False)


FORMS = {
    "npz": lambda folder: forms.write_npz(folder / "data.npz"),
    "shards": lambda folder: forms.write_shards(folder / "shards"),
    "hdf5": lambda folder: forms.write_hdf5(folder / "hdf5"),
    "off": lambda folder: forms.write_classes(folder / "off", forms.off, ".off"),
    "npy": lambda folder: forms.write_classes(folder / "npy", forms.npy, ".npy"),
    "ply": lambda folder: forms.write_classes(folder / "ply", forms.ply, ".ply", splits=None, count=5),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_normalised_clouds_of_both_splits(tmp_path, form):
    for split in open_data(str(FORMS[form](tmp_path)), points=18):
        assert split.classes == forms.CLASSES and set(split.labels.tolist()) == {0, 1}
        assert split.points.shape[1] <= 18
        radius = split.points.norm(dim=2).amax(1)
        torch.testing.assert_close(radius, torch.ones_like(radius))
        assert split.points.mean(1).abs().max() < 1e-6


@pytest.mark.untyped
def test_what_tacit_data_holds_is_the_default_and_shapes_made_here_are_the_last_resort(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.experiments.pointcloud.data.source.embedded", lambda: "made here")
    assert open_data() == "made here" == open_data("embedded")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    assert open_data() == "made here"
    forms.write_npz(tmp_path / "modelnet40_small.npz")
    assert len(open_data()[0]) == 6


def cut(path, share=0.5):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def with_value(value):
    points = forms.arrays()[0]
    points[3, 5, 1] = value
    return points


def folder_with(write, suffix, spoil):
    def make(folder):
        forms.write_classes(folder / "set", write, suffix)
        spoil(folder / "set" / "stick" / "train" / f"stick_train1{suffix}")
        return folder / "set"

    return make


def hdf5_with(spoil):
    def make(folder):
        spoil(forms.write_hdf5(folder / "set"))
        return folder / "set"

    return make


def npz_with(spoil=lambda path: None, **changes):
    def make(folder):
        path = forms.write_npz(folder / "data.npz", **changes)
        spoil(path)
        return path

    return make


def rewritten(name, **content):
    def spoil(folder):
        import h5py

        with h5py.File(folder / name, "w") as file:
            file.update(content)

    return spoil


def second_file(folder):
    rewritten("ply_data_train1.h5", data=forms.arrays(points=9)[0], label=forms.arrays()[1])(folder)
    (folder / "train_files.txt").write_text("ply_data_train0.h5\nply_data_train1.h5\n")


FACE = "3 0 2 1"
BROKEN = {
    "nothing there": (lambda folder: folder / "none", r"none do not exist"),
    "another kind of file": (
        lambda folder: forms.write_npz(folder / "a.npz").rename(folder / "a.zip"),
        r"a\.zip should be",
    ),
    "an empty folder": (lambda folder: folder, r"holds no data in a known form"),
    "npz cut": (npz_with(cut), r"data\.npz \(\d+ bytes\) is truncated or corrupt"),
    "npz empty": (npz_with(lambda path: path.write_bytes(b"")), r"data\.npz.*truncated or corrupt"),
    "npz with a flipped byte": (
        npz_with(lambda path: flip(path, 400)),
        r"data\.npz.*truncated or corrupt.*train_points",
    ),
    "npz without an array": (npz_with(test_labels=None), r"no array 'test_labels'.*train_labels"),
    "npz with objects": (npz_with(class_names=np.array([{}], object)), r"data\.npz.*corrupt"),
    "points in a plane": (npz_with(train_points=np.zeros((6, 16, 2))), r"shape \(clouds, points, 3\).*\(6, 16, 2\)"),
    "whole numbers": (npz_with(train_points=np.zeros((6, 16, 3), int)), r"should be floating"),
    "labels in fractions": (
        npz_with(train_labels=np.array([0.5, 1, 0, 1, 0, 1])),
        r"labels should be whole numbers; they are float64",
    ),
    "labels in words": (
        npz_with(test_labels=np.array(list("abcabc"))),
        r"labels should be whole numbers; they are <U1",
    ),
    "numbers beyond measure": (npz_with(train_points=with_value(1e38)), r"row 3 has coordinates too large"),
    "labels too few": (
        npz_with(train_labels=np.zeros(5, int)),
        r"data\.npz, train: 6 clouds but labels of shape \(5,\)",
    ),
    "no clouds": (
        npz_with(test_points=np.zeros((0, 9, 3)), test_labels=np.zeros(0, int)),
        r"test: there are no clouds",
    ),
    "a label of no class": (
        npz_with(test_labels=np.array([0, 1, 0, 1, 7, 1])),
        r"test: row 4 has a label outside 0 to 1",
    ),
    "nan": (npz_with(train_points=with_value(np.nan)), r"train: row 3 has a coordinate that is not finite"),
    "infinity": (npz_with(test_points=with_value(np.inf)), r"test: row 3 has a coordinate that is not finite"),
    "one place": (
        npz_with(train_points=np.ones((6, 16, 3))),
        r"row 0 \(and 5 others\) has all its points in one place",
    ),
    "hdf5 without its list": (
        hdf5_with(lambda folder: (folder / "test_files.txt").unlink()),
        r"test_files\.txt is missing",
    ),
    "hdf5 file missing": (
        hdf5_with(lambda folder: (folder / "ply_data_train0.h5").unlink()),
        r"train0\.h5 is missing.*names it",
    ),
    "hdf5 cut": (
        hdf5_with(lambda folder: cut(folder / "ply_data_train0.h5", 0.3)),
        r"train0\.h5.*truncated or corrupt",
    ),
    "hdf5 with labels in words": (
        hdf5_with(rewritten("ply_data_test0.h5", data=forms.arrays()[0], label=[b"cube"] * 6)),
        r"test0\.h5: labels should be whole numbers",
    ),
    "hdf5 with clouds of another size": (
        hdf5_with(lambda folder: second_file(folder)),
        r"train1\.h5 has 9 points a cloud, files before it 16",
    ),
    "hdf5 without labels": (hdf5_with(rewritten("ply_data_test0.h5", data=forms.arrays()[0])), r"no data set 'label'"),
    "off without header": (
        folder_with(forms.off, ".off", lambda p: p.write_text("4 4 6")),
        r"stick_train1\.off does not begin",
    ),
    "off cut": (
        folder_with(forms.off, ".off", lambda p: cut(p, 0.8)),
        r"stick_train1\.off is truncated: 4 vertices and 4 faces",
    ),
    "off with a wild corner": (
        folder_with(forms.off, ".off", lambda p: p.write_text(forms.TETRAHEDRON.replace(FACE, "3 0 2 9"))),
        r"face 0 names corners that are not there",
    ),
    "off without surface": (
        folder_with(forms.off, ".off", lambda p: p.write_text("OFF 3 1 0\n0 0 0\n1 1 1\n2 2 2\n3 0 1 2\n")),
        r"no surface to sample",
    ),
    "npy cut": (folder_with(forms.npy, ".npy", cut), r"stick_train1\.npy.*truncated or corrupt"),
    "npy of another shape": (
        folder_with(forms.npy, ".npy", lambda p: np.save(p, np.ones(5))),
        r"should hold points \(n, 3\)",
    ),
    "npy without points": (
        folder_with(forms.npy, ".npy", lambda p: np.save(p, np.ones((0, 3)))),
        r"train1\.npy has no points",
    ),
    "npy with a broken header": (folder_with(forms.npy, ".npy", lambda p: flip(p, 60)), r"train1\.npy.*corrupt"),
    "npy in one place": (
        folder_with(forms.npy, ".npy", lambda p: np.save(p, np.ones((9, 3)))),
        r"train1\.npy has all its points in one place",
    ),
    "npy that leads nowhere": (
        folder_with(forms.npy, ".npy", lambda p: (p.unlink(), p.symlink_to("gone"))),
        r"No such file.*train1\.npy",
    ),
    "npy with nan": (
        folder_with(forms.npy, ".npy", lambda p: np.save(p, np.full((4, 3), np.nan))),
        r"row 0 .*not finite",
    ),
    "ply cut": (
        folder_with(forms.ply, ".ply", lambda p: cut(p, 0.9)),
        r"train1\.ply is truncated: 20 vertices need 260 bytes",
    ),
    "ply without header": (folder_with(forms.ply, ".ply", lambda p: cut(p, 0.2)), r"no PLY header"),
    "a class without training files": (
        lambda folder: (
            [forms.write_classes(folder / "set", forms.npy, ".npy"), (folder / "set" / "void").mkdir()]
            and folder / "set"
        ),
        r"class 'void'.*no training file",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_data_set_is_refused_with_its_file_and_row(tmp_path, kind):
    make, message = BROKEN[kind]
    with pytest.raises(DataError, match=message):
        open_data(str(make(tmp_path)), points=18)
