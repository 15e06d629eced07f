"""Image sets in every layout they come in, and in the broken ones, which are named."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.image.samples import class_folders, encoded, packed, picture
from tacit.experiments.common.errors import DataError
from tacit.experiments.image.data import ArrayImages, evenly, load, narrowed


def test_train_and_val_folders(tmp_path):
    class_folders(tmp_path / "train", {"cat": 3, "dog": 2})
    class_folders(tmp_path / "val", {"cat": 1, "dog": 1})
    train, val = load(tmp_path)
    assert train.classes == val.classes == ("cat", "dog")
    assert train.labels.tolist() == [0, 0, 0, 1, 1] and val.labels.tolist() == [0, 1]
    assert train.image(0).size == (24, 20)


def test_val_may_lack_a_class_and_keeps_the_numbers_of_train(tmp_path):
    class_folders(tmp_path / "train", {"cat": 1, "dog": 1, "owl": 1})
    class_folders(tmp_path / "val", {"owl": 1, "dog": 1})
    _, val = load(tmp_path)
    assert [val.classes[k] for k in val.labels] == ["dog", "owl"]


def test_a_class_only_in_val_is_named(tmp_path):
    class_folders(tmp_path / "train", {"cat": 1})
    class_folders(tmp_path / "val", {"cat": 1, "owl": 1})
    with pytest.raises(DataError, match=r"1 classes are in val and not in train: owl"):
        load(tmp_path)


def test_any_folder_of_class_folders_is_split_the_same_way_every_time(tmp_path):
    class_folders(tmp_path / "a", {"cat": 10, "dog": 5, "owl": 1})
    class_folders(tmp_path / "b", {"cat": 10, "dog": 5, "owl": 1})
    train, val = load(tmp_path / "a", 0.2)
    again, _ = load(tmp_path / "b", 0.2)
    assert val.labels.tolist() == [0, 0, 1] and len(train) == 13
    assert [train.image(i).tobytes() for i in range(13)] == [again.image(i).tobytes() for i in range(13)]
    kept, held = ({images.image(i).tobytes() for i in range(len(images))} for images in (train, val))
    assert len(kept) == 13 and len(held) == 3 and not kept & held


def test_an_npz_file_and_its_shards_hold_the_same_images(tmp_path):
    whole = packed(tmp_path / "whole.npz", [0, 1, 2, 0], [2, 1])
    (tmp_path / "parts").mkdir()
    packed(tmp_path / "parts" / "1.npz", [0, 1], [2])
    arrays = dict(np.load(whole))
    for split, cut in (("train", 2), ("val", 1)):
        offset = arrays[f"{split}_offset"]
        arrays[f"{split}_jpeg"] = arrays[f"{split}_jpeg"][offset[cut] :]
        arrays[f"{split}_offset"] = offset[cut:] - offset[cut]
        arrays[f"{split}_labels"] = arrays[f"{split}_labels"][cut:]
    np.savez(tmp_path / "parts" / "2.npz", **arrays)
    for one, other in zip(load(whole), load(tmp_path / "parts")):
        assert one.classes == other.classes == ("cat", "dog", "owl")
        assert one.labels.tolist() == other.labels.tolist()
        assert [one.image(i).tobytes() for i in range(len(one))] == [other.image(i).tobytes() for i in range(len(one))]


def test_an_npz_file_without_names_numbers_its_classes(tmp_path):
    train, _ = load(packed(tmp_path / "x.npz", [0, 1], [1], wnids=None))
    assert train.classes == ("0", "1")


def test_a_broken_image_in_an_npz_file_is_named_by_its_row(tmp_path):
    path = packed(tmp_path / "x.npz", [0, 1, 2], [0])
    arrays = dict(np.load(path))
    arrays["train_jpeg"] = arrays["train_jpeg"].copy()
    arrays["train_jpeg"][arrays["train_offset"][1] :][:50] = 0
    np.savez(path, **arrays)
    train, _ = load(path)
    assert train.image(0).size == train.image(2).size
    with pytest.raises(DataError, match=r"x\.npz, train, image 1: expected an image"):
        train.image(1)


BROKEN = {
    "two_offsets_short": ({"train_offset": np.array([0, 3])}, "train_offset expects one number more .* 4; received 2"),
    "offset_backwards": ({"train_offset": np.array([0, 9, 5, 12])}, "does not grow after row 1"),
    "bytes_missing": ({"train_jpeg": np.zeros(7, np.uint8)}, "runs? from 0 to the 7 bytes .* truncated"),
    "no_labels": ({"train_labels": None}, "expected train_labels beside train_jpeg"),
    "labels_beyond": ({"train_labels": np.array([0, 1, 9])}, "numbers from 0 to 2; received 0 to 9"),
    "labels_negative": ({"train_labels": np.array([0, 1, -2])}, "numbers from 0 to 2; received -2 to 1"),
    "labels_fractions": ({"train_labels": np.array([0.5, 1, 2])}, "whole numbers in a row; received float64"),
    "bytes_as_numbers": ({"train_jpeg": np.zeros(9)}, "expects bytes"),
    "no_val": ({"val_jpeg": None}, "expected val_jpeg"),
    "class_missing": ({"train_labels": np.array([0, 1, 1])}, "1 classes have no training image: owl"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_npz_file_is_refused_by_name(tmp_path, kind):
    changed, says = BROKEN[kind]
    with pytest.raises(DataError, match=says) as raised:
        load(packed(tmp_path / "x.npz", [0, 1, 2], [0], **changed))
    assert "x.npz" in str(raised.value)


def test_a_truncated_npz_file_is_refused(tmp_path):
    path = packed(tmp_path / "x.npz", [0, 1, 2], [0])
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"x\.npz \(200 bytes\) is truncated or corrupt"):
        load(path)


def test_shards_of_different_classes_are_refused(tmp_path):
    packed(tmp_path / "1.npz", [0, 1, 2], [0])
    packed(tmp_path / "2.npz", [0, 1], [0], wnids=np.array(["cat", "dog"]))
    with pytest.raises(DataError, match=r"2\.npz: wnids expects the class names of .*1\.npz"):
        load(tmp_path)


def test_folders_that_hold_nothing_to_learn_from_are_refused(tmp_path):
    with pytest.raises(DataError, match="nothing is there"):
        load(tmp_path / "gone")
    (tmp_path / "train").mkdir()
    with pytest.raises(DataError, match="received no folder"):
        load(tmp_path)
    (tmp_path / "train" / "1.png").write_bytes(encoded(picture(0)))
    with pytest.raises(DataError, match="images that no folder gives a class"):
        load(tmp_path)
    (tmp_path / "train" / "cat").mkdir()
    with pytest.raises(DataError, match=r"cat: expected images .* the folder has none"):
        load(tmp_path)


def test_evenly_takes_the_first_of_each_class_in_turn():
    labels = np.array([0, 0, 0, 1, 1, 2], dtype=np.int64)
    pixels = np.arange(6, dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 1, 3), np.uint8)
    taken = evenly(ArrayImages(("a", "b", "c"), labels, pixels), 4)
    assert taken.labels.tolist() == [0, 0, 1, 2]
    assert [np.asarray(taken.image(i)).max() for i in range(4)] == [0, 1, 3, 5]
    assert len(evenly(taken, 99)) == 4


def test_narrowed_keeps_the_images_of_the_first_classes():
    pixels = np.zeros((4, 1, 1, 3), np.uint8)
    images = ArrayImages(("a", "b", "c"), np.array([2, 0, 1, 0], dtype=np.int64), pixels)
    kept = narrowed(images, 2)
    assert kept.classes == ("a", "b") and kept.labels.tolist() == [0, 1, 0]
    with pytest.raises(DataError, match="at most the 3 that the data have; received 4"):
        narrowed(images, 4)
