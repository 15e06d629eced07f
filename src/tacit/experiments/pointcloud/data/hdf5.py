"""ModelNet40 as `modelnet40_ply_hdf5_2048`: HDF5 files named by `train_files.txt` and `test_files.txt`.

Each file has `data` (m, 2048, 3) and `label` (m, 1); `shape_names.txt` names the classes, one a line.
"""

from __future__ import annotations

from pathlib import Path

import torch

from tacit.errors import MissingDependencyError
from tacit.experiments.common.errors import DataError
from tacit.experiments.pointcloud.data.clouds import Clouds, as_tensors, checked
from tacit.shapes import Tensor

__all__ = ["read_hdf5"]


def read_hdf5(folder: Path) -> tuple[Clouds, Clouds]:
    """Return the training and the test split."""
    classes = tuple(_lines(folder / "shape_names.txt"))
    train, test = (_split(folder, split, classes) for split in ("train", "test"))
    return train, test


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise DataError(f"{path} is missing. The folder should be modelnet40_ply_hdf5_2048 as it is unpacked.")
    try:
        return path.read_text("utf-8").split()
    except UnicodeDecodeError:
        raise DataError(f"{path} is no text; it should hold a name a line.") from None


def _split(folder: Path, split: str, classes: tuple[str, ...]) -> Clouds:
    parts = []
    for line in _lines(folder / f"{split}_files.txt"):
        path = folder / Path(line).name  # the list has paths of the machine it was made on
        if not path.is_file():
            raise DataError(f"{path} is missing, but {split}_files.txt names it. Unpack the data again.")
        points, labels = _read(path)
        parts.append(checked(points, labels, classes, path))
        if points.shape[1] != parts[0].points.shape[1]:
            raise DataError(f"{path} has {points.shape[1]} points a cloud, files before it {parts[0].points.shape[1]}.")
    if not parts:
        raise DataError(f"{folder / f'{split}_files.txt'} names no file.")
    points, labels = torch.cat([part.points for part in parts]), torch.cat([part.labels for part in parts])
    return Clouds(points, labels, classes, source=folder.name)


def _read(path: Path) -> tuple[Tensor, Tensor]:
    try:
        import h5py
    except ImportError:
        raise MissingDependencyError("HDF5 files need h5py: pip install 'tacit[experiments]'.") from None
    try:
        with h5py.File(path, "r") as file:
            for name in ("data", "label"):
                if name not in file:
                    raise DataError(f"{path} has no data set '{name}'. It has: {', '.join(file)}.")
                if not isinstance(file[name], h5py.Dataset) or not file[name].shape:
                    raise DataError(f"{path}: '{name}' should be an array.")
            points, labels = (file[name][:] for name in ("data", "label"))
            points = points.astype(points.dtype.newbyteorder("="), copy=False)  # of this machine
            return as_tensors(points, labels.reshape(-1), str(path))
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, MemoryError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path} ({path.stat().st_size} bytes) is truncated or corrupt: {error}. Fetch it again."
        ) from None
