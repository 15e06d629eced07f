"""Tables for people and for programs, each with what made it: command, commit, seed, versions, scale.

about = provenance(seed=0, scale="60 epochs, 2,048 points, 2,468 test clouds")
write_table(folder / "table2", ["%", "max"], [[0, "88.1"]], about, title="Trained clean")   # .md and .csv
"""

from __future__ import annotations

import csv
import io
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tacit.experiments.common.files import write_bytes

__all__ = ["commit", "markdown", "provenance", "write_table"]


def commit() -> str:
    """Return the commit this source stands at, "+" behind it where it was changed since; or TACIT_COMMIT; or a word."""
    here = Path(__file__).resolve().parent
    if "TACIT_COMMIT" in os.environ:
        return os.environ["TACIT_COMMIT"]
    try:
        head = _git(here, "rev-parse", "--short", "HEAD")
        return head + (
            "+" if _git(here, "status", "--porcelain", "--untracked-files=no", "--", here.parents[1]) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown (not a checkout)"


def _git(folder: Path, *words: str | Path) -> str:
    run = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def _program() -> list[str]:
    """Return the words that start this program: the command, or a script of that name."""
    name = Path(sys.argv[0]).name
    return ["python", name] if name.endswith(".py") and name != "__main__.py" else ["tacit"]


def provenance(device: torch.device | str = "cpu", **facts: Any) -> dict[str, Any]:
    """Return what a reader needs to make a result again: the command, the commit, versions, device, and `facts`."""
    device = torch.device(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        "command": shlex.join([*_program(), *sys.argv[1:]]),
        "commit": commit(),
        **facts,
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}",
        "device": name,
    }


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown, columns aligned: the first to the left, the others to the right.

    >>> print(markdown(["pooling", "top-1"], [["max", 88.4]]))
    | pooling | top-1 |
    |:--------|------:|
    | max     |  88.4 |
    """
    cells = [list(map(str, row)) for row in rows]
    widths = [max(len(row[i]) for row in [list(columns), *cells]) for i in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        first, *rest = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
        return "| " + " | ".join([first, *rest]) + " |"

    rule = (
        "|" + "|".join((":" + "-" * (w + 1)) if i == 0 else ("-" * (w + 1) + ":") for i, w in enumerate(widths)) + "|"
    )
    return "\n".join([line(columns), rule, *map(line, cells)])


def write_table(
    stem: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]], about: Mapping[str, Any], title: str = ""
) -> None:
    """Write `stem.md` (title, table, provenance) and `stem.csv` (provenance as comments, then the same cells)."""
    parts = [f"### {title}\n"] if title else []
    parts += [markdown(columns, rows), "", *(f"* {name}: {_shown(name, value)}" for name, value in about.items())]
    write_bytes(stem.with_suffix(".md"), ("\n".join(parts) + "\n").encode())
    text = io.StringIO()
    text.writelines(f"# {name}: {value}\n" for name, value in about.items())
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_bytes(stem.with_suffix(".csv"), text.getvalue().encode())


def _shown(name: str, value: Any) -> str:
    return f"`{value}`" if name in ("command", "commit") else str(value)
