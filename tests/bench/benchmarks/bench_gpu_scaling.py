"""Time against number of particles on a GPU, by stage, and one problem of more than 2^31 candidates.

Frame pairs as in bench_gpu.py, displacement .5, gate 1.5 density^(-1/3): 14.5 candidates per point at every
size. `gpu_ms` is the median of five runs between two events; the stages are medians of five further runs that
synchronise with the GPU after each stage. The bound of a stage is the least number of bytes that it must
move, over 4.3 TB/s, at 8 bytes for a candidate (column and cost), 24 for a point and 8 for the state of a row
or column: candidates are written once, read once by the bids and twice by the certificate (duals, margins).
`x_bound` is the measured time over the bound. The exponents are the slopes of log time against log n from
10^5 on, and from 10^6 on. Takes about a minute; `make gpu-bench` runs it, `make gpu-test` does not.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import cupy  # noqa: TID251  (the benchmark makes the points where they are used)
import measure
import numpy as np
from measure_gpu import add_to_long_record, milliseconds, timed
from pairs import frame_pair

from outbid import match
from outbid.compute.timing import stages_timed

DISPLACEMENT, GATE = 0.5, 1.5
BYTES_A_MS = 4.3e9
MANY = 66_000_000
"""Particles with 33 candidates each: more than 2^31."""


def least_bytes(stage: str, points: int, pairs: int) -> int:
    """Least number of bytes that a stage moves, both frames together."""
    return {
        "candidates": 24 * points + 8 * pairs,
        "bids": 8 * pairs + 8 * points,
        "certificate": 16 * pairs + 8 * points,
    }.get(stage, 0)


def sizes(counts: list[int]) -> Iterator[measure.Row]:
    for count in counts:
        source, target, _ = frame_pair(count, DISPLACEMENT)
        there = cupy.asarray(source), cupy.asarray(target)
        taken, found = milliseconds(lambda there=there: match(*there, GATE))  # type: ignore[misc]
        pairs = len(found.assignment.problem.costs.values)
        row: measure.Row = {"n": count, "candidates": round(pairs / count, 1), "gpu_ms": round(taken, 3)}
        runs = [_stages(there) for _ in range(5)]
        bound = 0.0
        for stage in runs[0]:
            spent = 1e3 * statistics.median(run[stage] for run in runs)
            least = least_bytes(stage, 2 * count, pairs) / BYTES_A_MS
            bound += least
            row[f"{stage}_ms"] = round(spent, 3)
            if least:
                row[f"{stage}_x_bound"] = round(spent / least, 1)
        yield row | {
            "bound_ms": round(bound, 4),
            "x_bound": round(taken / bound, 1),
            "gap": found.assignment.gap,
        }


def _stages(there: tuple[Any, Any]) -> dict[str, float]:
    with stages_timed() as (seconds, _):
        match(*there, GATE)
    return seconds


def exponent(rows: list[measure.Row], least: int) -> float:
    """Slope of log time against log n from some n on."""
    large = np.array([[row["n"], row["gpu_ms"]] for row in rows if row["n"] >= least], float)  # type: ignore[operator]
    return float(np.polyfit(*np.log(large).T, 1)[0])


def many(count: int, gate: float) -> Iterator[measure.Row]:
    """One frame pair with more candidates than 32 bits can count, simulated on the GPU; kappa .2."""
    rng = cupy.random.default_rng(0)
    side = count ** (1 / 3)
    source = side * rng.random((count, 3))
    target = source + 0.2 * rng.standard_normal((count, 3))
    replaced = cupy.arange(count) % 20 == 0
    target[replaced] = side * rng.random((int(replaced.sum()), 3))
    match(source[:1000], target[:1000], gate)
    cupy.get_default_memory_pool().free_all_blocks()
    taken, found = timed(lambda: match(source, target, gate))
    pairs = len(found.assignment.problem.costs.values)
    yield {
        "particles": count,
        "gate": gate,
        "candidates": pairs,
        "beyond_32_bits": pairs > 2**31,
        "gpu_ms": round(taken, 1),
        "gap": found.assignment.gap,
        "links": len(found.source),
        "true_percent": round(100 * float((found.source == found.target).mean()), 2),
        "gpu_gb": round(cupy.get_default_memory_pool().total_bytes() / 2**30, 1),
    }


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="keep the tables in gpu_long_record.json")
    chosen = parser.parse_args()
    rows = measure.show(sizes([round(10 ** (k / 2)) for k in range(6, 15)]))
    first, last = (round(exponent(rows, n), 3) for n in (100_000, 1_000_000))
    print(f"exponent from 10^5 on: {first}, from 10^6 on: {last}")
    results: dict[str, Any] = {"rows": rows, "exponent": first, "last_exponent": last}
    results["many"] = measure.show(many(MANY, 2.0))
    if chosen.record:
        add_to_long_record("scaling", results)


if __name__ == "__main__":
    main()
