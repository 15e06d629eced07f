"""Labels are the folders; the split is fixed where the folders do not make it."""

from __future__ import annotations

import pytest

from experiments.pointcloud.data import forms
from tacit.experiments.pointcloud.data import folder as module
from tacit.experiments.pointcloud.data.folder import listed, read_folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))


def test_both_orders_of_split_and_class_are_understood(tmp_path):
    inner = forms.write_classes(tmp_path / "inner", forms.npy, ".npy")
    outer = tmp_path / "outer"
    for split in ("train", "test"):
        for name in forms.CLASSES:
            (outer / split).mkdir(parents=True, exist_ok=True)
            (inner / name / split).rename(outer / split / name)
    forms.write_classes(tmp_path / "again", forms.npy, ".npy")
    for found in (listed(outer), listed(tmp_path / "again")):
        classes, splits = found
        assert classes == forms.CLASSES
        assert [[label for _, label in files] for files in splits] == [[0, 0, 0, 1, 1, 1]] * 2


def test_without_a_split_every_fifth_cloud_of_a_class_is_a_test_and_none_is_both(tmp_path):
    root = forms.write_classes(tmp_path / "set", forms.npy, ".npy", splits=None, count=10)
    _, (train, test) = listed(root)
    assert (len(train), len(test)) == (16, 4)
    assert not {path for path, _ in train} & {path for path, _ in test}
    assert listed(root) == listed(root)
    assert listed(root, seed=1) != listed(root)


def test_hidden_folders_are_no_classes(tmp_path):
    root = forms.write_classes(tmp_path / "set", forms.npy, ".npy")
    for name in (".git", "__pycache__"):
        (root / name).mkdir()
    assert listed(root)[0] == forms.CLASSES


def test_clouds_of_different_sizes_keep_their_sizes(tmp_path):
    def write(path, label):
        forms.npy(path, label, points=10 + 5 * label)

    train, _ = read_folder(forms.write_classes(tmp_path / "set", write, ".npy"), points=12)
    assert train.counts.tolist() == [10, 10, 10, 12, 12, 12]
    assert train.points.shape == (6, 12, 3)
    assert not train.points[0, 10:].any()


def test_a_second_reading_comes_from_the_cache_and_a_changed_file_does_not(tmp_path, monkeypatch):
    root = forms.write_classes(tmp_path / "set", forms.npy, ".npy")
    read, files = module.read_cloud, []
    monkeypatch.setattr(module, "read_cloud", lambda path, *rest: files.append(path) or read(path, *rest))
    first = read_folder(root, 20)[0]
    assert len(files) == 12
    assert read_folder(root, 20)[0].points.equal(first.points) and len(files) == 12
    forms.npy(root / "cube" / "train" / "cube_train0.npy", 0, points=21)
    read_folder(root, 20)
    assert len(files) == 18
