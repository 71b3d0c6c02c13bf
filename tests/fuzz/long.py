"""``python -m fuzz.long``, in the folder tests: many processes for minutes, and the record of it.

An hour is divided over processes with numbers of their own. The record, tests/fuzz_record.json, holds
commit, date, machine, and what became of the cases of each format.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import measure

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "tests" / "fuzz_record.json"
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "BLOSC_NTHREADS": "1", "ARROW_IO_THREADS": "1", "ZARR_THREADING__MAX_WORKERS": "1",
    "ZARR_ASYNC__CONCURRENCY": "1", "MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system",
}  # fmt: skip
"""Stacks of threads and pools of memory count as address space, which is limited."""
_APART = 10**7
"""Numbers of cases that belong to one process."""


def begin(*words: object) -> subprocess.Popen[str]:
    """A run in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "fuzz", *map(str, words)]
    environment = {**os.environ, **_ONE_THREAD}
    return subprocess.Popen(
        command, cwd=REPOSITORY / "tests", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


def ended(run: subprocess.Popen[str]) -> dict[str, Any]:
    """What it found; a process that died is a find."""
    said, errors = run.communicate()
    if run.returncode:
        died = {"kind": "process", "verdict": "crash", "said": f"exit {run.returncode}: {errors[-2000:]}"}
        return {"tally": {}, "finds": [died], "reached": {}}
    return json.loads(said.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, help="of each; without it an hour is divided among them")
    parser.add_argument("--first", type=int, default=0, help="number of the first case of the first process")
    parser.add_argument("--measured", type=int, default=500, help="cases of each format that are measured")
    parser.add_argument("--keep", type=Path, default=REPOSITORY / "build" / "fuzz")
    parser.add_argument("--record", type=Path, default=RECORD)
    given = parser.parse_args()
    count = max(given.processes - 1, 1)  # one looks at the branches
    seconds = given.seconds or 3600 / count
    long = ["--count", _APART, "--keep", given.keep]
    runs = [begin(*long, "--seconds", seconds, "--first", given.first + k * _APART) for k in range(count)]
    measured = begin("--count", given.measured, "--measure", "quietly")
    reached, found = ended(measured), [ended(run) for run in runs]
    tally: dict[str, Counter[str]] = {}
    for one in [*found, reached]:
        for name, counts in one["tally"].items():
            tally.setdefault(name, Counter()).update(counts)
    record = {
        **measure.stated(), "hours": round(count * seconds / 3600, 2),
        "cases": sum(counts.total() for counts in tally.values()),
        "outcomes": {name: dict(sorted(counts.items())) for name, counts in tally.items()},
        "finds": [find for one in [*found, reached] for find in one["finds"]],
        "branches": {k: round(v, 1) for k, v in reached["reached"].items()},
    }  # fmt: skip
    given.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.stderr.write(f"{record['cases']} cases, {len(record['finds'])} faults\n")


if __name__ == "__main__":
    main()
