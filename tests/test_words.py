"""Texts that users read are written in the field's terms and in plain English."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import REPOSITORY, git_files

WORDS = re.compile(
    r"\b(tells?|told|telling|heed(s|ed)?|foretold|foretells?|kin|sober(s|ed)?|sobriety|whoever|rehears(e|ed|als?)"
    r"|mend(s|ed)?|strangers?|pace|the house|worst gap|proved optimal|proven optimum|what a gate would mean"
    r"|left out of a range|in whatever form|whatever holds|held against each other|hold two (layers|results)"
    r"|again and again|as good as none|follows the hand|what became of|is found out|who did what"
    r"|hang(s|ing)? together|that is said|is said\.|foretelling|say before any|called otherwise"
    r"|beside the flow|all that is no|all else is|as far as|so far as|reckon(s|ed|ing)?|astray|lives of"
    r"|(is|are) none of|none of which|of which none|what is left|whichever)\b",
    re.IGNORECASE,
)
"""Words that are private or ambiguous; docs/reference/vocabulary.md has the terms to use."""
PROSE = re.compile(
    r"(?<!`)\b(beside|whatever|is no (table|number|link|track|spot|noise|particle)|is of (one|a|an|the)"
    r"|the process that gives out the work)\b(?!`)"
    r"|(^|[.!?] |- |\*\* )Of (?!course)",
    re.MULTILINE,
)
"""Further words that pages do without: say relative to or next to, is not a, and begin with the subject."""
READ = ("README.md", "docs/index.md", "docs/tutorial.md", "docs/gallery.md", "docs/reference/vocabulary.md")
"""Pages that have been read aloud, with those of docs/explanation and docs/howto."""


def pages() -> list[Path]:
    return git_files("*.md", "*.yaml", ".ci/*", "Makefile")


def read_by_users(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string in a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.smoke
@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_pages_use_the_field_s_terms(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert [f"{number}: {line}" for number, line in enumerate(lines, 1) if WORDS.search(line)] == []


def sentences_of(path: Path) -> str:
    """A page without its blocks of code, its tables that a program makes, and line breaks in paragraphs."""
    text = path.read_text("utf-8")
    text = re.sub(r"^```.*?^```$|<!-- table: .*?<!-- /table -->", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(?<=\S)\n(?=[^\s|#>-])", " ", text)


@pytest.mark.smoke
@pytest.mark.parametrize(
    "path",
    [*git_files(*READ), *git_files("docs/explanation/*.md", "docs/howto/*.md")],
    ids=lambda path: path.name,
)
def test_pages_begin_with_the_subject_and_are_not_beside(path: Path) -> None:
    text = sentences_of(path)
    assert [text[max(0, found.start() - 40) : found.end() + 40] for found in PROSE.finditer(text)] == []


@pytest.mark.smoke
def test_messages_and_docstrings_use_the_field_s_terms() -> None:
    modules = git_files("tracker/*.py", "simulate/*.py", "viewers/*.py", "data/*.py")
    assert len(modules) > 200
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{line} {WORDS.search(text)[0]}"
        for path in modules
        for line, text in read_by_users(path)
        if WORDS.search(text)
    ]
    assert wrong == []


def test_every_option_of_the_vocabulary_means_one_thing() -> None:
    page = (REPOSITORY / "docs" / "reference" / "vocabulary.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", page, re.MULTILINE)
    terms = [term for term, _ in rows if set(term) - set("- ") and term not in {"term", "option"}]
    assert len(terms) == len(set(terms)) >= 50
