"""The longer checks, and what they measured last: ``make nightly`` renews tests/bench/nightly_record.json.

Tests with the marker `nightly` are left out of ``make test``. The record holds commit, date, machine, and the
outcome of each of them. records.py states its age.
"""

import argparse
import ast
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from benchmarks import measure

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "tests" / "bench" / "nightly_record.json"


def marked() -> set[str]:
    """Tests with the marker `nightly`, of all cases or of some, as module::function."""
    found = set()
    for path in sorted((REPOSITORY / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                "pytest.mark.nightly" in ast.unparse(mark) for mark in node.decorator_list
            ):
                found.add(f"{path.stem}::{node.name}")
    return found


def outcomes(report: Path) -> dict[str, dict[str, object]]:
    """Outcome and seconds of each test, from pytest's report."""
    found = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.attrib['classname'].rpartition('.')[2]}::{case.attrib['name']}"
        bad = [child.tag for child in case if child.tag in {"failure", "error", "skipped"}]
        found[name] = {
            "outcome": bad[0] if bad else "passed",
            "seconds": round(float(case.attrib["time"]), 1),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="pytest's --junitxml of the tests with the marker nightly")
    tests = outcomes(parser.parse_args().report)
    record = {**measure.stated(), "tests": tests}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    failed = [name for name, test in tests.items() if test["outcome"] != "passed"]
    sys.exit(f"Not passed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
