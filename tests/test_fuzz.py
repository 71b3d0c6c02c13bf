"""Damaged files of every format, beside a second reader: a short `make fuzz`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples import NIGHT, PROFILE, examples
from fuzz.containers import SEEDS as CONTAINERS
from fuzz.judge import FAULTS
from fuzz.kinds import KINDS

from outbid.formats import FORMATS, READERS
from outbid.images import READERS as IMAGES

pytest.importorskip("coverage", reason="coverage is not installed: pip install 'outbid[test]'")
pytest.importorskip("lxml", reason="lxml is not installed: pip install 'outbid[test]'")
pytestmark = pytest.mark.timeout(400)
CASES = examples(170)
"""Of each format, always the same."""
BRANCHES = 90
"""Percent of the readers' branches that these cases reach at least."""


@pytest.fixture(scope="module")
def report(repository: Path) -> dict[str, Any]:
    """In a process of its own: memory is limited there, and what readers do is measured."""
    command = [sys.executable, "-m", "fuzz", "--count", CASES, "--measure", "quietly"]
    done = subprocess.run(
        [*map(str, command)], cwd=repository / "tests", capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": ""}, timeout=380,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_no_damaged_file_crashes_hangs_or_is_read_wrong(report: dict[str, Any]) -> None:
    assert report["finds"] == []
    assert {*report["tally"]} >= {*KINDS} - {*CONTAINERS}
    for tally in report["tally"].values():
        assert {*tally} <= {"agrees", "refused", "not judged"} | {*FAULTS}
        assert tally.get("agrees", 0) + tally.get("not judged", 0) > 0
        assert tally["refused"] > 0


def test_a_damaged_footer_of_one_column_ends_no_process() -> None:
    """In this case of the hour, pyarrow ended the process when it was asked for a column's metadata."""
    command = [sys.executable, "-m", "fuzz", "--kinds", "parquet", "--first", "2677", "--count", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["finds"] == []


@pytest.mark.skipif(PROFILE != NIGHT, reason="few cases reach fewer; `make nightly` tries all")
def test_the_branches_of_the_readers_are_reached(report: dict[str, Any]) -> None:
    assert report["reached"]["all"] >= BRANCHES


def test_every_format_that_is_read_has_an_entry() -> None:
    known = {module for kind in KINDS.values() for module in kind.modules}
    read = {*FORMATS.values(), *(module for _, module in READERS), *IMAGES.values(), "zarr"}
    assert sorted(read - known) == [], "Add an entry to tests/fuzz/kinds.py."
