"""What an experiment raises, beside the library's own errors: always with what to do next."""

from __future__ import annotations

from tacit.errors import TacitError

__all__ = ["CheckpointError", "ConfigError", "DataError", "Interrupted", "TrainingError", "WorkerLostError"]


class ConfigError(TacitError, ValueError):
    """A configuration has a key that does not exist, or a value that cannot be meant."""


class DataError(TacitError, ValueError):
    """A data file is missing, truncated or corrupt; the message names the file, and the row where there is one."""


class CheckpointError(TacitError, RuntimeError):
    """A checkpoint is damaged, or belongs to another run."""


class TrainingError(TacitError, RuntimeError):
    """A training cannot go on."""


class WorkerLostError(TrainingError):
    """Another process of the same training died or hangs."""


class Interrupted(TacitError, RuntimeError):
    """A training was asked to stop; it has saved its state."""
