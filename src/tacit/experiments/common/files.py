"""Files that are whole or not there: written beside their place, flushed to the disk, then moved in one step.

`alone_in(folder)` keeps a second process out of a folder.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.experiments.common.errors import DataError, TrainingError

__all__ = ["alone_in", "read_json", "sync_folder", "write_bytes", "write_json"]


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` such that a crash at any moment leaves the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can (POSIX)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the file `lock` in a folder; the system lets go of it when the process ends, however it ends.

    Where the system or the disk knows no such locks, nothing is held.

    Raises:
        TrainingError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(folder / "lock", "w") as file:
        try:
            fcntl.lockf(
                file, fcntl.LOCK_EX | fcntl.LOCK_NB
            )  # not flock: processes that this one forks must not hold it
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise TrainingError(
                    f"Another process is training in {folder} now. Wait for it, or choose another folder."
                ) from None
        yield


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically."""
    write_bytes(path, (json.dumps(value, indent=1, default=str) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote, or raise DataError with the name of the file."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}. Remove it, or bring back a copy.") from None
