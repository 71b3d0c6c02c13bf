"""Damaged files of every format, beside a second reader: a short `make fuzz`."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from examples import NIGHT, PROFILE, examples
from fuzz.cases import case_of
from fuzz.containers import NAMES as CONTAINERS
from fuzz.judge import FAULTS, verdict_on
from fuzz.kinds import KINDS, unjudged
from fuzz.second import Found

from outbid.formats import FORMATS

pytest.importorskip("coverage", reason="coverage is not installed: pip install 'outbid[test]'")
pytest.importorskip("lxml", reason="lxml is not installed: pip install 'outbid[test]'")
pytestmark = pytest.mark.timeout(400)
CASES = examples(170)
"""Of each format, always the same."""
BRANCHES = 90
"""Percent of the readers' branches that these cases reach at least."""
BROKEN = ("csv", "parquet", "isbi", "trackmate", "trackmate_csv", "ctc", "tiff")
"""Formats of which the second reader knows that a file must be refused."""


@pytest.fixture(scope="module")
def report(repository: Path) -> dict[str, Any]:
    """In a process of its own: memory is limited there, and what readers do is measured (slow) by night."""
    command = [sys.executable, "-m", "fuzz", "--count", CASES, *["--measure"] * (PROFILE == NIGHT)]
    done = subprocess.run(
        [*map(str, command)], cwd=repository / "tests" / "bench", capture_output=True, text=True, check=False,
        timeout=380,
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


FOUND = {"parquet": (120_000_519,)}
"""Numbers of cases by which long runs found a fault: texts of a column that are not there."""


def test_what_long_runs_found_is_no_fault_any_more(tmp_path: Path) -> None:
    for name, numbers in FOUND.items():
        seeds = list(KINDS[name].seeds(tmp_path))
        for number in numbers:
            assert verdict_on(KINDS[name], case_of(KINDS[name], seeds, number)).name not in FAULTS


def without_a_row(found: Found) -> Found:
    return replace(found, rows=found.rows[:-1])


@pytest.mark.filterwarnings("ignore")  # of NumPy and zarr, about odd headers
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.second is not unjudged])
def test_a_fault_that_is_planted_is_found(name: str, tmp_path: Path) -> None:
    """A row is lost; and of what is known to be broken, something is read."""
    kind, seeds = KINDS[name], list(KINDS[name].seeds(tmp_path))
    if not seeds:
        pytest.skip("its packages are not installed")
    losing = replace(kind, ours=lambda path, seed: without_a_row(kind.ours(path, seed)))
    cases = [case_of(kind, seeds, number) for number in range(100)]
    assert any(verdict_on(losing, case).name == "wrong" for case in cases)
    if name in BROKEN:
        tolerant = replace(kind, ours=lambda *_: Found(()))
        said = (verdict_on(tolerant, case).said for case in cases)
        assert any(what.startswith("read, though broken") for what in said)


@pytest.mark.skipif(PROFILE != NIGHT, reason="few cases reach fewer; `make nightly` tries all")
def test_the_branches_of_the_readers_are_reached(report: dict[str, Any]) -> None:
    assert report["reached"]["all"] >= BRANCHES


def test_every_format_that_is_read_has_an_entry() -> None:
    known = {module for kind in KINDS.values() for module in kind.modules}
    read = {each.module.rpartition(".")[2] for each in FORMATS} - {"folders"}  # TIFF and PNG
    assert sorted(read - known) == [], (
        "Add a sample to tests/samples/, or an entry to tests/bench/fuzz/kinds.py."
    )
