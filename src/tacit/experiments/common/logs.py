"""The log of a training: one row an epoch, in `log.csv` and, where it is installed, for TensorBoard.

A number that was not measured in an epoch is nan in that row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import MissingDependencyError
from tacit.experiments.common.files import write_bytes

__all__ = ["Log", "read_log"]


def read_log(folder: Path) -> list[dict[str, float]]:
    """Return the rows of `folder/log.csv`; none where there is no such file. A row cut short by a crash is left out."""
    path = folder / "log.csv"
    if not path.exists():
        return []
    lines = path.read_text("utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(whole)]


class Log:
    """Rows of numbers, appended; each is on the disk when `row` returns.

    Args:
        folder: where `log.csv` is and the folder `tensorboard` will be.
        epoch: rows of this epoch and later ones, left by a run that was cut off, are dropped.
        tensorboard: write TensorBoard's event files too.
    """

    def __init__(self, folder: Path, epoch: int = 0, *, tensorboard: bool = False) -> None:
        self.path = folder / "log.csv"
        kept = [row for row in read_log(folder) if row["epoch"] < epoch]
        self.columns: list[str] = list(kept[0]) if kept else []
        text = io.StringIO()
        if kept:
            writer = csv.DictWriter(text, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: f"{value:.9g}" for name, value in row.items()} for row in kept)
        write_bytes(self.path, text.getvalue().encode())
        self.events = _events(folder / "tensorboard", epoch) if tensorboard else None

    def row(self, values: Mapping[str, float]) -> None:
        """Append a row; the first one names the columns, `epoch` among them."""
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns or list(values), "nan", lineterminator="\n")
            if not self.columns:
                self.columns = list(values)
                writer.writeheader()
            writer.writerow({name: f"{value:.9g}" for name, value in values.items()})
        if self.events is not None:
            for name, value in values.items():
                self.events.add_scalar(name, value, int(values["epoch"]))
            self.events.flush()


def _events(folder: Path, epoch: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingDependencyError("--tensorboard needs TensorBoard: pip install 'tacit[experiments]'.") from None
    return SummaryWriter(str(folder), purge_step=epoch)
