"""The page of errors and the errors of the library are the same: each message has its row, each row its message."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tacit import errors

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tacit"
PAGE = (ROOT / "docs" / "errors.md").read_text("utf-8")
ROOMS = ("problem", "node", "solvers", "implicit")
GAP = "\0"


def text_of(node):
    """The words of a string literal, a GAP for every part that is computed; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or GAP for part in node.values)
    return None


def messages(paths):
    """Every string in the sources."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = text_of(node)
            if text and " " in text:
                yield text


def raised():
    """Every message that the rooms raise as it stands, with its place."""
    for path in [p for room in ROOMS for p in sorted((SOURCE / room).rglob("*.py"))] + [SOURCE / "options.py"]:
        if "external" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = text_of(node.exc.args[0])
                name = ast.unparse(node.exc.func).split(".")[-1]
                if text and name in errors.__all__:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def patterns():
    """The messages on the page, each a list of fragments."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    for row in rows:
        for quoted in re.findall(r"`([^`]*)`", row.split(" | ")[0]):
            if " " in quoted:
                yield [part for part in re.split(r"\.{3,}", quoted) if part.strip(" .'|()")]


def matches(fragments, text):
    """Whether the fragments come in this order in the text."""
    place = 0
    for fragment in fragments:
        place = text.find(fragment, place)
        if place < 0:
            return False
        place += len(fragment)
    return True


def test_every_message_on_the_page_is_one_of_the_library():
    known = list(messages(sorted(SOURCE.rglob("*.py"))))
    strangers = [p for p in patterns() if not any(matches(p, text) for text in known)]
    assert not strangers


def test_every_message_of_the_library_is_on_the_page():
    rows = list(patterns())
    assert len(rows) > 60
    missing = [place + " " + text for place, text in raised() if not any(matches(row, text) for row in rows)]
    assert not missing


def test_every_class_is_on_the_page():
    for name in errors.__all__:
        if name not in ("nearest",):
            assert f"`{name}`" in PAGE or f"tacit.errors.{name}" in PAGE, name
