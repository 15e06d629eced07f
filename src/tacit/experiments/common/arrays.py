"""NumPy's `.npz`, read whole, or refused by name."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

from tacit.experiments.common.errors import DataError

__all__ = ["BROKEN", "read_npz"]

# What a damaged archive leads to depends on where it is damaged: a flag may say it is encrypted (RuntimeError) or
# packed in an unknown way (NotImplementedError), a header may announce more than any memory holds.
BROKEN = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of a file, in this machine's byte order; every array's checksum is verified on the way.

    Raises:
        DataError: it is missing, truncated, corrupt, no `.npz`, or holds Python objects.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist.")
    try:
        with open(path, "rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            single = isinstance(archive, np.ndarray)
            arrays = {} if single else {name: archive[name] for name in archive.files}
    except BROKEN as error:
        raise DataError(
            f"{path} ({path.stat().st_size} bytes) is truncated or corrupt, or no .npz file: {error}. Fetch or make it "
            "again."
        ) from None
    if single:
        raise DataError(f"{path} holds one array without a name. Write it with numpy.savez.")
    return {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}
