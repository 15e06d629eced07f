"""Which form a data set has, told from its files, and the data set itself."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.experiments.common.errors import DataError
from tacit.experiments.pointcloud.data.clouds import Clouds
from tacit.experiments.pointcloud.data.embedded import embedded
from tacit.experiments.pointcloud.data.npz import read_npz, read_shards, shards

__all__ = ["open_data"]


def open_data(source: str = "") -> tuple[Clouds, Clouds]:
    """Return the training and the test split of a data set.

    Args:
        source: a file or folder in any of the forms of this package; "embedded"; or nothing: what TACIT_DATA names,
            else the embedded shapes.

    Raises:
        DataError: it is none of them, or a file is missing, truncated or corrupt.
    """
    source = source or os.environ.get("TACIT_DATA", "embedded")
    if source == "embedded":
        return embedded()
    path = Path(source)
    if not path.exists():
        raise DataError(
            f"The data {path} do not exist. Give a file or folder, or 'embedded' for shapes made on the spot."
        )
    if path.is_file():
        if path.suffix != ".npz":
            raise DataError(f"{path} should be an .npz file or a folder.")
        return read_npz(path)
    if shards(path, "train"):
        return read_shards(path)
    raise DataError(f"{path} holds none of the known forms.")
