"""The table a benchmark ends with: on the screen, and as `.md` and `.csv` where asked."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tacit.experiments.common.report import markdown, provenance, write_table


def add_out(parser: argparse.ArgumentParser) -> None:
    """Give a benchmark the option `--out`."""
    parser.add_argument("--out", type=Path, metavar="STEM", help="write STEM.md and STEM.csv too")


def tell(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    out: Path | None,
    device: torch.device | str = "cpu",
    **facts: Any,
) -> None:
    """Print the table and what made it; write both where asked."""
    about = provenance(device, **facts)
    about["command"] = shlex.join(["python", *sys.argv])
    print(f"\n{title}\n\n{markdown(columns, rows)}\n")
    for name, value in about.items():
        print(f"* {name}: {value}")
    if out is not None:
        write_table(out, columns, rows, about, title)
        print(f"* written: {out}.md")
