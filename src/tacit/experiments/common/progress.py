"""Progress: a bar where there is a terminal and `rich`, plain lines now and then where there is not.

with Progress("huber", total=24660, shown=world.first) as progress:
    progress.update(done=120, loss=1.7, accuracy=0.41)
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

__all__ = ["Progress"]


class Progress:
    """How far a long work has come.

    Args:
        label: what is being done.
        total: how many steps it has.
        start: how many were done before (a resumed run); they do not count for the time left.
        shown: False for silence.
        every: seconds between two plain lines.
    """

    def __init__(self, label: str, total: int, start: int = 0, *, shown: bool = True, every: float = 10.0) -> None:
        self.label, self.total, self.start, self.shown, self.every = label, total, start, shown, every
        self.begun = self.told = time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Progress:
        if self.shown and sys.stderr.isatty():
            self.bar, self.task = _bar(self.label, self.total, self.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def update(self, done: int, **values: float) -> None:
        """Show that `done` steps are done and how things stand."""
        now = time.monotonic()
        text = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        if self.bar is not None:
            self.bar.update(self.task, completed=done, text=text)
        elif self.shown and (now - self.told >= self.every or done >= self.total):
            self.told = now
            pace = (now - self.begun) / max(1, done - self.start)
            left = _clock(pace * (self.total - done))
            print(f"{self.label}  {done}/{self.total}  {text}  {left} left", file=sys.stderr, flush=True)

    def say(self, sentence: str) -> None:
        """Print a line without tearing the bar."""
        if self.bar is not None:
            self.bar.console.print(sentence, highlight=False)
        elif self.shown:
            print(sentence, file=sys.stderr, flush=True)


def _bar(label: str, total: int, start: int) -> tuple[Any, Any]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        return None, None
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
        console=Console(stderr=True),
    )
    task = bar.add_task(label, total=total, completed=start, text="")
    bar.start()
    return bar, task


def _clock(seconds: float) -> str:
    """Return minutes and seconds, with hours where there are any.

    >>> _clock(75), _clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
