"""The Python blocks of a markdown page.

A fenced block marked `python` is code and one marked `pycon` is a session with its output; the blocks of a page share
one namespace, in order. The line `<!-- skip: why -->` above a block keeps it from being run, and `<!-- prints -->` between a
`python` block and a `text` block insists that the one prints the other; `<!-- prints roughly -->` lets numbers differ.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(
    r"^(?P<indent>[ ]*)```[ ]*(?P<language>python|pycon)\b[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.M | re.S
)
SKIP = re.compile(r"<!--\s*skip\b:?\s*(?P<why>.*?)\s*-->\s*\Z", re.S)
PRINTS = re.compile(r"\A\s*<!--\s*prints(?P<roughly> roughly)?\s*-->\s*```text\n(?P<output>.*?)^\s*```", re.M | re.S)
NUMBER = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A block's code, the line of its page on which it begins, its language, why it is not run, and what it prints."""

    code: str
    line: int
    language: str
    skipped: str | None
    output: str | None = None
    roughly: bool = False


def blocks(text: str) -> Iterator[Block]:
    """The Python blocks of a page, in order."""
    for match in FENCE.finditer(text):
        skip = SKIP.search(text[: match.start()])
        line = text.count("\n", 0, match.start("code")) + 1
        prints = PRINTS.match(text[match.end() :])
        output = textwrap.dedent(prints["output"]) if prints else None
        roughly = bool(prints and prints["roughly"])
        why = skip["why"] if skip else None
        yield Block(textwrap.dedent(match["code"]), line, match["language"], why, output, roughly)


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
            _run_code(block, page, names)
        ran += 1
    return ran


def _run_code(block: Block, page: Path, names: dict[str, Any]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
    if block.output is None:
        return
    expected, got = block.output, printed.getvalue()
    if block.roughly:
        expected, got = NUMBER.sub("#", expected), NUMBER.sub("#", got)
    if not doctest.OutputChecker().check_output(expected, got, FLAGS):
        raise AssertionError(f"{page}:{block.line} expected:\n{block.output}\nprinted:\n{printed.getvalue()}")


def _run_session(block: Block, page: Path, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        raise AssertionError("".join(report))
