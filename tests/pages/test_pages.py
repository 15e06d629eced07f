"""What the pages show is what happens: every Python block of the README and of docs/ runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages.blocks import blocks, run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a block may save a figure
    run(page)


def test_blocks_share_a_namespace_and_come_in_order(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na = 1\n```\n\n    ```python\n    a += 1\n    ```\n```pycon\n>>> a\n2\n```\n```bash\nexit 1\n```\n"
    )
    assert run(page) == 3


def test_a_failing_block_names_the_line_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\nraise KeyError(x)\n```\n")
    with pytest.raises(KeyError) as caught:
        run(page)
    assert caught.traceback[-1].lineno + 1 == 5


def test_a_session_with_another_output_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match=r"Expected:\s+3"):
        run(page)


def test_a_block_is_skipped_with_a_reason_and_only_with_one(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- skip: needs an hour -->\n```python\n1 / 0\n```\n")
    assert [block.skipped for block in blocks(page.read_text())] == ["needs an hour"]
    assert run(page) == 0
    page.write_text("<!-- skip -->\n```python\n1 / 0\n```\n")
    with pytest.raises(ValueError, match="without a reason"):
        run(page)


def test_a_skip_holds_for_the_next_block_alone():
    found = list(blocks("<!-- skip: why -->\n```python\na\n```\n```python\nb\n```\n"))
    assert [block.skipped for block in found] == ["why", None]


def test_what_a_block_prints_is_compared_where_the_page_says_so(tmp_path):
    page = tmp_path / "page.md"
    text = "```python\nprint(6 * 7)\n```\n\n<!-- prints -->\n```text\n42\n```\n"
    page.write_text(text)
    assert run(page) == 1
    page.write_text(text.replace("\n42\n", "\n41\n"))
    with pytest.raises(AssertionError, match=r"page.md:2 expected:\n41"):
        run(page)
    page.write_text(text.replace("\n42\n", "\n41\n").replace("prints", "prints roughly"))
    assert run(page) == 1
