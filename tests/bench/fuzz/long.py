"""``python -m fuzz.long``, in tests/bench/: many processes for minutes, and the record of it.

An hour is divided over processes with numbers of their own. The record, tests/bench/fuzz_record.json, holds
commit, date, machine, and what became of the cases of each format.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import measure

REPOSITORY = Path(__file__).resolve().parents[3]
RECORD = REPOSITORY / "tests" / "bench" / "fuzz_record.json"
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "BLOSC_NTHREADS": "1", "ARROW_IO_THREADS": "1", "ZARR_THREADING__MAX_WORKERS": "1",
    "ZARR_ASYNC__CONCURRENCY": "1", "MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system",
}  # fmt: skip
"""Stacks of threads and pools of memory count as address space, which is limited."""
_APART = 10**7
"""Numbers of cases that belong to one process."""


def report_of(words: Sequence[object]) -> dict[str, Any]:
    """What a run in a process of its own found; a process that died is a find."""
    command = [sys.executable, "-W", "ignore", "-m", "fuzz", *map(str, words)]
    done = subprocess.run(
        command, cwd=RECORD.parent, env={**os.environ, **_ONE_THREAD}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        said = f"exit {done.returncode}: {done.stderr[-2000:]}"
        return {"tally": {}, "finds": [{"kind": "process", "verdict": "crash", "said": said}], "reached": {}}
    return json.loads(done.stdout.splitlines()[-1])


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
    same = ["--count", _APART, "--keep", given.keep, "--seconds", seconds]
    runs = [[*same, "--first", given.first + k * _APART] for k in range(count)]
    with ThreadPoolExecutor(count + 1) as pool:
        reports = list(pool.map(report_of, [*runs, ["--count", given.measured, "--measure"]]))
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        for name, counts in report["tally"].items():
            tally[name].update(counts)
    record = {
        **measure.stated(),
        "hours": round(count * seconds / 3600, 2),
        "cases": sum(counts.total() for counts in tally.values()),
        "outcomes": {name: dict(sorted(counts.items())) for name, counts in tally.items()},
        "finds": [find for report in reports for find in report["finds"]],
        "branches": {name: round(share, 1) for name, share in reports[-1]["reached"].items()},
    }
    given.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.stderr.write(f"{record['cases']} cases, {len(record['finds'])} faults\n")


if __name__ == "__main__":
    main()
