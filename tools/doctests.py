"""Shows the examples of a docstring as the sessions they are, and each argument on a row of its own.

Markdown reads a bare `>>>` as three nested quotations, so each run of example lines is fenced before it is read. Arguments
that a docstring explains together, `rows, columns: how many`, would be taken for one of that strange name.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension


def fenced(docstring: str) -> str:
    """The docstring with a ```pycon fence around every run of lines from a `>>>` to the next empty line."""
    out: list[str] = []
    indent: str | None = None
    inside_fence = False
    for line in docstring.splitlines():
        if line.strip().startswith("```"):
            inside_fence = not inside_fence
        if indent is None and not inside_fence and line.lstrip().startswith(">>> "):
            indent = line[: len(line) - len(line.lstrip())]
            out.append(f"{indent}```pycon")
        elif indent is not None and not line.strip():
            out.append(f"{indent}```")
            indent = None
        out.append(line)
    if indent is not None:
        out.append(f"{indent}```")
    return "\n".join(out)


TOGETHER = re.compile(r"^( {4})(\w+(?:, \w+)+): ")


def apart(docstring: str) -> str:
    """The docstring with an entry for each of several arguments that are explained together."""
    out: list[str] = []
    lines = docstring.splitlines()
    inside = False
    for i, line in enumerate(lines):
        if line and not line.startswith(" "):
            inside = line in ("Args:", "Attributes:")
        match = TOGETHER.match(line) if inside else None
        if match is None:
            out.append(line)
            continue
        more = []
        for following in lines[i + 1 :]:
            if not following.startswith(match[1] + "    "):
                break
            more.append(following)
        *first, last = match[2].split(", ")
        for name in first:
            out += [f"{match[1]}{name}: {line[match.end() :]}", *more]
        out.append(f"{match[1]}{last}: {line[match.end() :]}")
    return "\n".join(out)


class Doctests(Extension):
    """Fences the examples of every docstring that is loaded, and lists its arguments one by one."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = apart(fenced(obj.docstring.value))
