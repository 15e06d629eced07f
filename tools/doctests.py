"""Shows the examples of a docstring as the sessions they are.

Markdown reads a bare `>>>` as three nested quotations, so each run of example lines is fenced before it is read.
"""

from __future__ import annotations

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


class Doctests(Extension):
    """Fences the examples of every docstring that is loaded."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
