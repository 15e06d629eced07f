"""The parts of the documentation build that are ours: folded navigation, formulas, examples."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page():
    return SimpleNamespace(file=SimpleNamespace(src_path="page.md"))


def test_a_folder_in_the_navigation_becomes_its_pages_with_the_index_first(tmp_path):
    for name in ("layers/a.md", "layers/index.md", "layers/b.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    nav = [{"Home": "index.md"}, {"Zoo": [{"Layers": "layers/"}, {"Empty": "none/"}]}]
    config = tool("site").on_config(SimpleNamespace(nav=nav, docs_dir=str(tmp_path)))
    assert config.nav == [
        {"Home": "index.md"},
        {"Zoo": [{"Layers": ["layers/index.md", "layers/a.md", "layers/b.md"]}]},
    ]


def test_a_page_named_as_code_becomes_a_link_if_it_is_there():
    files = SimpleNamespace(get_file_from_path=lambda path: path if path == "api/nn.md" else None)
    page = SimpleNamespace(file=SimpleNamespace(src_path="paper/claims.md"))
    out = tool("site").on_page_markdown("`docs/api/nn.md`, `api/none.md`, [`api/nn.md`](x)", page, files)
    assert out == "[`docs/api/nn.md`](../api/nn.md), `api/none.md`, [`api/nn.md`](x)"


def test_a_formula_becomes_mathml_and_its_entities_are_read(page):
    content = '<p>If <span class="arithmatex">\\(a &lt; b\\)</span> then.</p>'
    out = tool("site").on_page_content(content, page)
    assert "<math" in out and "<mo>&lt;</mo>" in out and "arithmatex" not in out


def test_a_formula_that_cannot_be_read_is_a_warning_naming_the_page(page, caplog):
    content = '<div class="arithmatex">\\[\\nosuchcommand\\]</div>'
    assert tool("site").on_page_content(content, page) == content
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "page.md" in caplog.text and "nosuchcommand" in caplog.text


def test_examples_in_a_docstring_are_fenced_up_to_the_next_empty_line():
    docstring = "One.\n\n    >>> f(1)\n    2\n\nMore.\n\n>>> g()"
    assert tool("doctests").fenced(docstring) == (
        "One.\n\n    ```pycon\n    >>> f(1)\n    2\n    ```\n\nMore.\n\n```pycon\n>>> g()\n```"
    )


def test_an_example_already_fenced_is_left_alone():
    docstring = "```pycon\n>>> f(1)\n```"
    assert tool("doctests").fenced(docstring) == docstring


def test_arguments_explained_together_become_entries_of_their_own():
    docstring = "One.\n\nArgs:\n    a, b: of the sum,\n        each.\n    c: more.\n\nText, this: stays."
    assert tool("doctests").apart(docstring) == (
        "One.\n\nArgs:\n    a: of the sum,\n        each.\n    b: of the sum,\n        each.\n    c: more.\n\nText, this: stays."
    )
