"""The longer checks, and what they measured last: ``make nightly`` renews tests/nightly_record.json.

Tests with the marker `nightly` are left out of ``make test``. The record holds commit, date, machine, the
outcome of each of them, and the accuracy on recorded movies. records.py states its age.
"""

import argparse
import ast
import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks import measure

from outbid import TrackingRun, TrackingSettings, Tracks, read_tracks, score, track

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = REPOSITORY / "tests" / "nightly_record.json"
DATA = REPOSITORY.parent / "shared" / "data"
MOVIES = (
    ("celegans/L1.csv", 1), ("celegans/L1.csv", 3), ("celegans/L2.csv", 1), ("celegans/L5.csv", 1),
    ("ascidian/Pm05.csv", 1), ("ascidian/Pm08.csv", 1), ("ascidian/Pm08.csv", 5), ("mouse_geff/tidy.csv", 1),
    ("hela_geff/Fluo-N2DL-HeLa-01.zarr", 1), ("turbulence/tracers_2000.csv", 1),
    ("turbulence/subcube.csv", 1), ("turbulence/subcube.csv", 2),
)  # fmt: skip
"""Recorded movies beside the checkout, and every how many-th frame is linked."""


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


def accuracy() -> Iterator[dict[str, object]]:
    """Scores of recorded movies whose identities are removed, linked with nothing set."""
    for name, stride in MOVIES:
        truth = read_tracks(DATA / name).every(stride)
        run = track(truth.detections, TrackingSettings())
        values = score(run.tracks, truth, families=("links", "identity", "divisions")).values
        yield {
            "movie": name, "every": stride, "detections": len(truth.detections),
            **{key: round(values[key], 4) for key in ("link_f1", "idf1")},
            "division_f1": None if np.isnan(values["division_f1"]) else round(values["division_f1"], 4),
            "stated": round(float(np.mean(run.tracks.link_probability)), 4),
            "right": round(right(run, truth), 4),
        }  # fmt: skip


def right(run: TrackingRun, truth: Tracks) -> float:
    """Share of the links that are true: what the mean of their probabilities should be."""
    size = len(truth.detections)
    return float(np.isin(run.tracks.links @ [size, 1], truth.links @ [size, 1]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="pytest's --junitxml of the tests with the marker nightly")
    tests = outcomes(parser.parse_args().report)
    record = {**measure.stated(), "tests": tests, "accuracy": list(accuracy())}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    failed = [name for name, test in tests.items() if test["outcome"] != "passed"]
    sys.exit(f"Not passed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
