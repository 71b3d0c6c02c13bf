"""What fits no GPU as a matrix, or only just: 200,000 points, and a matrix of 30 GB from disk in four shards.

Points: two unrelated clouds in a cube, no matrix. Matrix: uniform integers in [0, 10n] as .npy, mapped by
every shard, all of which take turns on one GPU. `seconds` holds reading, search and certificate; `passes` is
how often all pairs were asked for better ones. `--record` keeps all rows in gpu_long_record.json.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cupy  # noqa: TID251  (the benchmark waits for the device itself)
import measure
import numpy as np
from bench_gpu_shards import Hashed
from measure_gpu import kept

from outbid import Assignment, AssignmentProblem, DenseCosts, PointCosts, assign
from outbid.compute.arrays import to_device, to_host

SHARDS = 4
_ROWS = 1000
"""Rows that are written at once."""


def _row(kind: str, size: int, seconds: float, answer: Assignment) -> measure.Row:
    stats = answer.stats
    row: measure.Row = {"costs": kind, "n": size, "shards": stats.get("shards", 1)}
    row |= {"seconds": round(seconds, 2), "status": answer.status.name, "gap": float(answer.gap)}
    pool = cupy.get_default_memory_pool()
    row["gpu_gb"] = round(pool.total_bytes() / 1e9, 1)
    pool.free_all_blocks()
    return row | {name: stats.get(name, 0) for name in ("passes", "candidates", "messages", "bytes_sent")}


def points(size: int) -> Iterator[measure.Row]:
    clouds = np.random.default_rng(0).uniform(0, size ** (1 / 3), (2, size, 3))
    problem = AssignmentProblem(PointCosts(*map(to_device, clouds)))
    for shards in (None, SHARDS):
        start = time.perf_counter()
        answer = assign(problem, shards=shards)
        gap = answer.gap
        assert gap >= 0 or abs(gap) < 1e-6 * answer.primal_cost
        yield _row("points", size, time.perf_counter() - start, answer)


def matrix(size: int, folder: Path) -> Iterator[measure.Row]:
    path = folder / "costs.npy"
    _say(f"writing {4 * size**2 / 1e9:.0f} GB")
    made = np.lib.format.open_memmap(path, "w+", np.int32, (size, size))
    costs = Hashed(size, 10 * size, 0)
    for first in range(0, size, _ROWS):
        made[first : first + _ROWS] = to_host(costs.rows(first, min(first + _ROWS, size)))
    made.flush()
    del made
    cupy.get_default_memory_pool().free_all_blocks()
    problem = AssignmentProblem(DenseCosts(np.load(path, mmap_mode="r")))
    _say("reading, search and certificate")
    start = time.perf_counter()
    answer = assign(problem, "sparsified", devices=[0], shards=SHARDS)
    assert answer.gap == 0
    yield _row(f"{path.stat().st_size / 1e9:.0f} GB", size, time.perf_counter() - start, answer)


def _say(step: str) -> None:
    print(f"# {step}", flush=True)


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="keep the rows in gpu_long_record.json")
    chosen = parser.parse_args()
    results: dict[str, Any] = {"rows": []}
    rows = points(200_000)
    measure.show(kept("huge_problems", rows, results, record=chosen.record))
    with tempfile.TemporaryDirectory() as folder:
        rows = kept("huge_problems", matrix(87_000, Path(folder)), results, record=chosen.record)
        measure.show(rows)


if __name__ == "__main__":
    main()
