"""The Python blocks of a markdown page.

A fenced block marked `python` is code and one marked `pycon` is a session with its output; the blocks of a page share
one namespace, in order. The line `<!-- skip: why -->` above a block keeps it from being run.
"""

from __future__ import annotations

import doctest
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(
    r"^(?P<indent>[ ]*)```[ ]*(?P<language>python|pycon)\b[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.M | re.S
)
SKIP = re.compile(r"<!--\s*skip\b:?\s*(?P<why>.*?)\s*-->\s*\Z", re.S)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A block's code, the line of its page on which it begins, its language, and why it is not run (or None)."""

    code: str
    line: int
    language: str
    skipped: str | None


def blocks(text: str) -> Iterator[Block]:
    """The Python blocks of a page, in order."""
    for match in FENCE.finditer(text):
        skip = SKIP.search(text[: match.start()])
        line = text.count("\n", 0, match.start("code")) + 1
        yield Block(textwrap.dedent(match["code"]), line, match["language"], skip["why"] if skip else None)


def run(page: Path) -> int:
    """Run the blocks of a page and return how many ran; a traceback names the line of the page."""
    names: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(page.read_text("utf-8")):
        if block.skipped is not None:
            if not block.skipped:
                raise ValueError(f"{page}:{block.line} is skipped without a reason; write <!-- skip: why -->")
            continue
        if block.language == "pycon":
            _run_session(block, page, names)
        else:
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
        ran += 1
    return ran


def _run_session(block: Block, page: Path, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        raise AssertionError("".join(report))
