"""How the GPU's benchmarks measure, and the record that they write together: tests/bench/gpu_record.json.

The longer ones, which `make gpu-test` leaves out, keep theirs in tests/bench/gpu_long_record.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import cupy  # noqa: TID251  (the benchmarks time the device itself)
import measure

REPOSITORY = Path(__file__).resolve().parents[3]
RECORD = REPOSITORY / "tests" / "bench" / "gpu_record.json"
LONG_RECORD = REPOSITORY / "tests" / "bench" / "gpu_long_record.json"
_LONG = 1000.0
"""Milliseconds from which a single run counts."""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds between two events around some work, and its result."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    result = work()
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop)), result


def milliseconds(work: Callable[[], Any], repeats: int = 5) -> tuple[float, Any]:
    """The median of some runs (of one, beyond a second) after a run that compiles, and the last result."""
    result, times = work(), []
    while len(times) < repeats and (not times or times[0] < _LONG):
        taken, result = timed(work)
        times.append(taken)
    return statistics.median(times), result


def once(work: Callable[[], Any]) -> tuple[float, Any]:
    """The time of a second run, or of the only one if that takes seconds, and the last result."""
    taken, result = timed(work)
    return (taken, result) if taken > 3 * _LONG else timed(work)


def begin_record(tests: dict[str, int]) -> None:
    """Write the record anew: its origin and tests."""
    _write({**_origin(), "tests": tests})


def recorded(table: str, rows: Iterable[measure.Row], seconds: float) -> Iterator[measure.Row]:
    """Rows as they come, each at once in the record of the same run; the rest is left out when time is over.

    Raises
    ------
    SystemExit
        If the record was begun at another commit.
    """
    begun, done = time.monotonic(), []
    for row in rows:
        done.append(row)
        record = json.loads(RECORD.read_text("utf-8"))
        if record["commit"] != measure.commit():
            raise SystemExit("The record was begun at another commit. Run `make gpu-test` again.")
        _write(record | {table: done})
        yield row
        if time.monotonic() - begun > seconds:
            print(f"{table}: after {seconds:g} s the rest is left out")
            return


def add_to_long_record(name: str, results: dict[str, Any]) -> None:
    """Replace one part of the record of the longer benchmarks; each part states its own origin."""
    record = json.loads(LONG_RECORD.read_text("utf-8")) if LONG_RECORD.exists() else {}
    record[name] = _origin() | results
    LONG_RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def kept(
    name: str, rows: Iterable[measure.Row], results: dict[str, Any], *, record: bool
) -> Iterator[measure.Row]:
    """Rows as they come, each put into the results; with `record` these are kept at once."""
    for row in rows:
        results["rows"].append(row)
        if record:
            add_to_long_record(name, results)
        yield row


def _origin() -> dict[str, str]:
    """Commit, date, card, driver and versions."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    driver = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    stated = measure.stated()
    provenance = f"CuPy {cupy.__version__}, {stated.pop('machine')}"
    return stated | {
        "card": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "driver": driver or "unknown",
        "provenance": provenance,
    }


def _write(record: dict[str, Any]) -> None:
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
