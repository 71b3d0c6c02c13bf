"""The auction and Deep Greedy Switching on the GPU, timed with events, costs in its memory.

Auction: uniform integers as int32 in [0, n/10], [0, n] and [0, 10n], distances in 3D as in Vasconcelos &
Rosenhahn, and particles within a gate; the median of five runs, all that `assign` does. Switching: GEOM of
Roverso et al., ten seeds, float64; `worst_percent` is the largest distance to the optimum, by `sparsified`,
`gap_percent` that to its own proof. Evaluation: one difference evaluation of all lines in both forms, and
on the host's processors.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy  # noqa: TID251  (the benchmark times the device itself)
import measure
import numpy as np
from scipy.spatial.distance import cdist

from outbid.tracker import Assignment, AssignmentProblem, DenseCosts, PointCosts, assign, match
from outbid.tracker.assign.auction import Auction
from outbid.tracker.assign.greedy_switching import GreedySwitching, _Switching
from outbid.tracker.assign.problem import on_gpu

RECORD = Path(__file__).resolve().parents[1] / "gpu_record.json"
RANGES = {"integers to n/10": 0.1, "integers to n": 1.0, "integers to 10n": 10.0}
SWITCHING = {
    "sequential": GreedySwitching(),
    "parallel": GreedySwitching(parallel=True),
    "sequential, mixed": GreedySwitching(mixed=True),
    "parallel, mixed": GreedySwitching(parallel=True, mixed=True),
}


def milliseconds(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median time between two events; what compiles must have run before."""
    result, times = None, []
    for _ in range(repeats):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        result = work()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop))
    return statistics.median(times), result


def auction_problem(kind: str, size: int) -> AssignmentProblem:
    rng = np.random.default_rng(0)
    if kind in RANGES:
        return AssignmentProblem(
            DenseCosts(rng.integers(0, round(RANGES[kind] * size) + 1, (size, size), dtype=np.int32))
        )
    if kind == "distances in 3D":
        return AssignmentProblem(PointCosts(rng.random((size, 3)), rng.random((size, 3))))
    points = rng.uniform(0, size ** (1 / 3), (size, 3))
    return match(points, points + 0.5 * rng.normal(size=points.shape), 1.2).assignment.problem


def geom(size: int, seed: int) -> AssignmentProblem:
    points = 1000 * np.random.default_rng(seed).random((size, 2))
    return AssignmentProblem(DenseCosts(-cdist(points, points)))


def auctions(sizes: list[int], repeats: int) -> Iterator[measure.Row]:
    for size in sizes:
        for kind in (*RANGES, "distances in 3D", "particles"):
            problem = on_gpu(auction_problem(kind, size))
            solver = Auction(most_rounds=5_000_000)
            row: measure.Row = {"n": size, "costs": kind}
            assign(on_gpu(auction_problem(kind, 200)), solver)  # compiles
            try:
                taken, answer = milliseconds(lambda p=problem, s=solver: assign(p, s), repeats)  # type: ignore[misc]
            except RuntimeError as error:
                yield row | {"gpu_ms": str(error)[:40]}
                continue
            yield row | {"gpu_ms": round(taken, 2), "gap": answer.gap, **answer.stats}


def switching(sizes: list[int], seeds: int, optimum_to: int) -> Iterator[measure.Row]:
    for size in sizes:
        problems = [geom(size, seed) for seed in range(seeds)]
        best = [
            assign(on_gpu(problem), "sparsified").primal_cost for problem in problems if size <= optimum_to
        ]
        for name, solver in SWITCHING.items():
            if "mixed" in name and size > 2000:
                continue
            found: list[tuple[float, Assignment]] = []
            assign(on_gpu(geom(100, 0)), solver)  # compiles
            for problem in problems:
                there = on_gpu(problem)
                found.append(milliseconds(lambda p=there, s=solver: assign(p, s), 1))  # type: ignore[misc]
            gaps = [-a.gap / a.primal_cost for _, a in found]
            taken = statistics.median(milliseconds for milliseconds, _ in found)
            row: measure.Row = {"n": size, "variant": name, "gpu_ms": round(taken, 1)}
            start = time.perf_counter()
            if name == "sequential" and size <= 5000:
                assign(problems[0], solver)
                row["cpu_ms"] = round(1e3 * (time.perf_counter() - start))
            if best:
                errors = [1 - a.primal_cost / least for (_, a), least in zip(found, best, strict=True)]
                row["worst_percent"] = round(100 * max(errors), 5)
            row["gap_percent"] = round(100 * max(gaps), 4)
            yield row | {"switches": statistics.median(a.stats["switches"] for _, a in found)}


def evaluations(sizes: list[int]) -> Iterator[measure.Row]:
    for size in sizes:
        row: measure.Row = {"n": size}
        for place, form in (("gpu", "global"), ("gpu", "shared"), ("cpu", "shared")):
            problem = geom(size, 0)
            work = _Switching(on_gpu(problem) if place == "gpu" else problem, form)
            work.take_any(np.random.default_rng(0))
            work.evaluate(lambda: False)  # compiles
            taken, _ = milliseconds(lambda work=work: work.evaluate(lambda: False), 5)  # type: ignore[misc]
            row[f"{place}_ms" if place == "cpu" else f"{form}_ms"] = round(taken, 3)
        yield row


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="add the tables to tests/gpu_record.json")
    parser.add_argument("--auctions", type=int, nargs="*", default=[1000, 5000, 20_000])
    parser.add_argument("--switching", type=int, nargs="*", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--optimum-to", type=int, default=10_000, help="the largest n solved exactly as well")
    chosen = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{device}, CuPy {cupy.__version__}")
    tables = {
        "evaluations": measure.show(evaluations(chosen.switching), None),
        "auctions": measure.show(auctions(chosen.auctions, chosen.repeats), chosen.csv),
        "switching": measure.show(switching(chosen.switching, chosen.seeds, chosen.optimum_to), None),
    }
    if chosen.record:
        record = json.loads(RECORD.read_text("utf-8")) | tables
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
