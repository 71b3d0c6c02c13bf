"""The documentation: what its pages and the README say is what happens."""

import re
from pathlib import Path

import blocks
import pytest
import renew
from checkout import REPOSITORY

from outbid.assignment import SOLVERS

PAGES = {
    page.relative_to(REPOSITORY).as_posix(): blocks.blocks_of(page.read_text("utf-8"))
    for page in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")))
}


def test_the_blocks_of_the_front_page_do_what_they_say(tmp_path: Path) -> None:
    """Those of the other pages are run by `make docs`, which `.ci/run` does as well."""
    blocks.run_blocks(PAGES["README.md"], tmp_path)


@pytest.mark.smoke
def test_tables_name_every_solver() -> None:
    explained = (REPOSITORY / "docs" / "explanation" / "assignment.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", explained, re.MULTILINE)) == set(SOLVERS)


@pytest.mark.smoke
def test_what_the_readme_shows_is_there_and_small() -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", (REPOSITORY / "README.md").read_text("utf-8"))
    assert [target for target in targets if not (REPOSITORY / target).exists()] == []
    pictures = [REPOSITORY / target for target in targets if target.endswith((".gif", ".png", ".svg"))]
    assert pictures
    assert max(picture.stat().st_size for picture in pictures) < 2_000_000


def test_tables_of_pages_are_there_and_those_of_the_code_are_new() -> None:
    pages = renew.pages()
    assert {page.name for page in pages} >= {"README.md", "csv.md", "files.md", "results.md"}
    for page in pages:
        text = page.read_text("utf-8")
        if page.name in ("csv.md", "files.md"):
            assert renew.renewed(text) == text, "run python docs/renew.py"
        found = re.findall(r"<!-- table: \w+ -->(.*?)<!-- /table -->", text, re.DOTALL)
        assert [table for table in found if not table.strip()] == []
        assert renew.renewed(renew.renewed(text)) == renew.renewed(text)
        assert "{{" not in text


@pytest.mark.smoke
def test_no_page_shows_a_picture_that_is_not_there() -> None:
    for page in (REPOSITORY / "docs").rglob("*.md"):
        if "_run" not in page.parts:
            shown = re.findall(r"!\[[^]]*\]\((?!http)([^)#]+)\)", page.read_text("utf-8"))
            assert [picture for picture in shown if not (page.parent / picture).exists()] == []
