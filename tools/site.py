"""What the documentation site needs beyond its generator: folders in the navigation, links, mathematics as MathML.

MathML is part of the page, so a formula needs neither a script nor a font from the network.
"""

from __future__ import annotations

import html
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from math_core import LatexError, LatexToMathML

log = logging.getLogger("mkdocs.hooks.site")

PAGE = re.compile(r"(?<!\[)`(?:docs/)?([\w/]+\.md)`")
"""A page of the site by its name, as in the table of claims."""

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
MACROS = {
    "argmin": r"\operatorname*{arg\,min}",
    "D": r"\mathrm{D}",
    "R": r"\mathbb{R}",
    "T": r"\mathsf{T}",
    "sign": r"\operatorname{sign}",
    "diag": r"\operatorname{diag}",
}


def on_config(config: Any) -> Any:
    """Replace each entry of the navigation that ends in `/` by the pages of that folder."""
    config.nav = _unfolded(config.nav, Path(config.docs_dir))
    return config


def _unfolded(entries: list[Any], docs: Path) -> list[Any]:
    out = []
    for entry in entries:
        ((title, target),) = entry.items() if isinstance(entry, dict) else [(None, entry)]
        if isinstance(target, list):
            out.append({title: _unfolded(target, docs)})
        elif target.endswith("/"):
            pages = sorted((docs / target).rglob("*.md"), key=lambda page: (page.name != "index.md", page))
            if pages:
                out.append({title: [str(page.relative_to(docs)) for page in pages]})
        else:
            out.append(entry)
    return out


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Make a link of every page that is named as code."""

    def linked(match: re.Match[str]) -> str:
        if files.get_file_from_path(match[1]) is None:
            return match[0]
        return f"[{match[0]}]({posixpath.relpath(match[1], posixpath.dirname(page.file.src_path))})"

    return PAGE.sub(linked, markdown)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Replace every formula of a page by MathML; one that cannot be read is a warning, which fails the build."""

    def converted(match: re.Match[str]) -> str:
        tex = html.unescape(match[3])
        try:
            return LatexToMathML(macros=MACROS, fancy_error=False).convert_with_local_state(
                tex, displaystyle=match[2] == "["
            )
        except LatexError as error:
            log.warning("%s: %s in the formula %s", page.file.src_path, error, tex.strip())
            return match[0]

    return FORMULA.sub(converted, content)
