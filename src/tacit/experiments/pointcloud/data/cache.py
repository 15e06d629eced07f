"""What was slow to read is read once: kept under a name made of the files' names, sizes and times.

The folder is TACIT_CACHE, or `runs/cache`. A kept file that is damaged is made anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tacit.experiments.common.checkpoint import read_checkpoint, write_checkpoint
from tacit.experiments.common.errors import CheckpointError

__all__ = ["cache_folder", "cached"]


def cache_folder() -> Path:
    """Return where kept data are."""
    return Path(os.environ.get("TACIT_CACHE", "runs/cache"))


def cached(
    files: Sequence[tuple[Path, int]], options: tuple[Any, ...], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return `make()`, or what it returned when last asked for the same files, unchanged since, and options."""
    facts = [(str(path.resolve()), label, path.stat().st_size, path.stat().st_mtime_ns) for path, label in files]
    path = cache_folder() / f"{hashlib.sha256(repr((facts, options)).encode()).hexdigest()[:32]}.pt"
    if path.exists():
        try:
            return read_checkpoint(path)
        except CheckpointError:
            path.unlink()
    made = make()
    write_checkpoint(path, made)
    return made
