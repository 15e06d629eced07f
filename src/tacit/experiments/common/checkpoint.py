"""Checkpoints that are whole or refused.

A file holds one line, `tacit-checkpoint-1 SHA256`, and then what `torch.save` wrote; the hash is of the bytes that
follow. A new file is written beside its place and moved there in one step, and the one before is kept, so that a
crash at any moment leaves a whole one. Loading checks the hash first and runs no code from the file.

    checkpoints = Checkpoints(folder)      # folder/last.pt, folder/previous.pt
    checkpoints.save({"model": model.state_dict(), "epoch": 3})
    state = checkpoints.load()             # None where nothing was saved
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tacit.experiments.common.errors import CheckpointError
from tacit.experiments.common.files import write_bytes

__all__ = ["Checkpoints", "read_checkpoint", "write_checkpoint"]

_MAGIC = b"tacit-checkpoint-1 "
_HEADER = len(_MAGIC) + 64 + 1


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write tensors and plain values to `path`, atomically, under their hash."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    write_bytes(path, _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_checkpoint(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Return what `write_checkpoint` wrote, tensors on `device`.

    Raises:
        CheckpointError: the file is missing, is not a checkpoint, or any of its bytes is not what was written.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"The checkpoint {path} cannot be read: {error.strerror}.") from None
    head, body = content[:_HEADER], content[_HEADER:]
    if head != _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n":
        kind = "is damaged: its bytes are not those that were written" if head[:8] == _MAGIC[:8] else "is no checkpoint"
        raise CheckpointError(f"{path} ({len(content)} bytes) {kind}. Remove it, or bring back a copy.")
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(body), map_location=device, weights_only=True)
    except pickle.UnpicklingError:
        raise CheckpointError(f"{path} holds more than tensors and plain values; it is not loaded.") from None
    return state


class Checkpoints:
    """The last two checkpoints of a run.

    Args:
        folder: where `last.pt` and `previous.pt` are.
        tell: called with a sentence when a damaged file is passed over.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None] = lambda sentence: None) -> None:
        self.last, self.previous = folder / "last.pt", folder / "previous.pt"
        self.tell = tell

    def save(self, state: dict[str, Any]) -> None:
        """Make `state` the last checkpoint and the last one the previous."""
        fresh = self.last.with_name("next.pt")
        write_checkpoint(fresh, state)
        if self.last.exists():
            os.replace(self.last, self.previous)
        os.replace(fresh, self.last)

    def load(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """Return the newest whole checkpoint, or None where none was ever saved.

        Raises:
            CheckpointError: there are files, and every one of them is damaged.
        """
        complaint: CheckpointError | None = None
        for path in (self.last, self.previous):
            if path.exists():
                try:
                    return read_checkpoint(path, device)
                except CheckpointError as error:
                    complaint = complaint or error
                    self.tell(f"{error} Trying the one before.")
        if complaint is not None:
            raise complaint
        return None
