"""An archive is read whole, or refused by name, wherever it is damaged."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.experiments.common.arrays import read_npz
from tacit.experiments.common.errors import DataError


@pytest.fixture
def path(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(6.0), names=np.array(["a", "b"]))
    return tmp_path / "a.npz"


def test_arrays_come_back_in_this_machines_byte_order(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3, dtype=">f4"))
    x = read_npz(tmp_path / "a.npz")["x"]
    assert x.dtype.isnative and x.tolist() == [0, 1, 2]


def test_no_flipped_byte_is_met_by_anything_but_the_same_arrays_or_an_error_with_the_name(path):
    content, whole = path.read_bytes(), read_npz(path)
    refused = 0
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        try:
            found = read_npz(path)
        except DataError as error:
            refused += 1
            assert "a.npz" in str(error)
        else:
            assert all(np.array_equal(array, whole[name]) for name, array in found.items() if name in whole)
    assert refused > len(content) / 2


def test_no_truncated_file_is_read(path):
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"a\.npz \(\d+ bytes\) is truncated or corrupt"):
            read_npz(path)


def test_what_is_missing_or_of_another_kind_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.npz does not exist"):
        read_npz(tmp_path / "none.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(DataError, match="one array without a name"):
        read_npz((tmp_path / "one.npy").rename(tmp_path / "one.npz"))
    np.savez(tmp_path / "objects.npz", x=np.array([{}], object))
    with pytest.raises(DataError, match=r"objects\.npz.*corrupt"):
        read_npz(tmp_path / "objects.npz")
