"""Which form a data set has, told from its files, and the data set itself."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.experiments.common.errors import DataError
from tacit.experiments.pointcloud.data.clouds import Clouds
from tacit.experiments.pointcloud.data.embedded import embedded
from tacit.experiments.pointcloud.data.folder import read_folder
from tacit.experiments.pointcloud.data.hdf5 import read_hdf5
from tacit.experiments.pointcloud.data.npz import read_npz, read_shards, shards

__all__ = ["open_data"]


def open_data(source: str = "", points: int = 2048) -> tuple[Clouds, Clouds]:
    """Return the training and the test split of a data set.

    Args:
        source: a file or folder in any of the forms of this package; "embedded"; or nothing: ModelNet40 in the folder
            TACIT_DATA, where there is one, else the embedded shapes.
        points: how many are sampled from a mesh, and the most that are kept of a file of points.

    Raises:
        DataError: it is none of them, or a file is missing, truncated or corrupt.
    """
    source = source or _found()
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
    if (path / "train_files.txt").exists():
        return read_hdf5(path)
    return read_folder(path, points)


def _found() -> str:
    """Return the ModelNet40 that lies in the folder TACIT_DATA, or "embedded"."""
    folder = os.environ.get("TACIT_DATA")
    candidates = sorted(Path(folder).glob("modelnet40*")) if folder else []
    return str(candidates[0]) if candidates else "embedded"
