"""The auction and Deep Greedy Switching on the GPU, timed with events, costs in device memory.

Auction: uniform integers as int32 in [0, n/10], [0, n] and [0, 10n]; distances in 3D as in Vasconcelos &
Rosenhahn; GEOM of Roverso et al. (up to n = 5000, for their Figure 3); and 1000 particles at density 1, kappa
.5, gate 1.2 density^(-1/3). Everything that `assign` does is timed, the median of five runs (a single run
above n = 5000). Distances up to n = 1000 are also solved by the auction and the Hungarian algorithm on the
CPU, for Figure 6 of Vasconcelos & Rosenhahn. Switching: GEOM, ten seeds; `gap_percent` is the largest gap to
the solver's own bound, `worst_percent` that to the optimum by `sparsified` (above n = 5000 to the bound, so
it is not less than the true value). Evaluation: one difference evaluation of all lines in both forms, and on
the CPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import measure
import numpy as np
from bench_gpu_dense import RANGES, clouds, uniform
from measure_gpu import milliseconds, recorded, timed

from outbid import Assignment, AssignmentProblem, DenseCosts, PointCosts, assign, match
from outbid._arrays import to_device
from outbid.assignment.greedy_switching import GreedySwitching, _Switching
from outbid.assignment.points import dense_of
from outbid.assignment.problem import on_gpu, on_host

PARTICLES, TIMED_OFTEN, ON_THE_CPU = 1000, 5000, 2000
"""The largest n of particles, of auctions that are run five times, and of switching on the CPU."""
WITH_OPTIMUM = 5000
"""The largest n for which the optimum is computed."""
MOST = {"sequential": 10_000, "parallel": 5000, "sequential, mixed": 1000, "parallel, mixed": 1000}
SWITCHING = {
    "sequential": GreedySwitching(),
    "parallel": GreedySwitching(parallel=True),
    "sequential, mixed": GreedySwitching(mixed=True),
    "parallel, mixed": GreedySwitching(parallel=True, mixed=True),
}


def auction_problem(kind: str, size: int) -> AssignmentProblem:
    if kind in RANGES:
        return AssignmentProblem(uniform(size, RANGES[kind]))
    if kind == "distances in 3D":
        return AssignmentProblem(clouds(size))
    if kind == "GEOM":
        return geom(size, 0)
    points = np.random.default_rng(0).uniform(0, size ** (1 / 3), (size, 3))
    moved = points + 0.5 * np.random.default_rng(1).normal(size=points.shape)
    return on_gpu(match(points, moved, 1.2).assignment.problem)


def geom(size: int, seed: int) -> AssignmentProblem:
    """The GEOM problem of Roverso et al., costs on the GPU."""
    points = to_device(1000 * np.random.default_rng(seed).random((size, 2)))
    return AssignmentProblem(DenseCosts(-dense_of(PointCosts(points, points)).values))


def auctions(sizes: list[int]) -> Iterator[measure.Row]:
    for size in sizes:
        for kind in (*RANGES, "distances in 3D", "GEOM", "particles"):
            if size <= {"GEOM": TIMED_OFTEN, "particles": PARTICLES}.get(kind, size):
                problem = auction_problem(kind, size)
                measured = timed if size > TIMED_OFTEN else milliseconds
                taken, answer = measured(lambda p=problem: assign(p, "auction"))  # type: ignore[misc]
                row: measure.Row = {"n": size, "costs": kind, "gpu_ms": round(taken, 2), "gap": answer.gap}
                if kind == "distances in 3D" and size <= PARTICLES:
                    here = on_host(problem)
                    for name in ("auction", "hungarian"):
                        seconds, _ = measure.best_of(2, lambda p=here, s=name: assign(p, s))  # type: ignore[misc]
                        row[f"cpu_{name}_ms"] = round(1e3 * seconds, 1)
                yield row | {"status": answer.status.name} | answer.stats


def switching(sizes: list[int], seeds: int) -> Iterator[measure.Row]:
    for solver in SWITCHING.values():
        assign(geom(100, 0), solver)  # compiles
    for size in sizes:
        found: dict[str, list[tuple[float, Assignment, float]]] = {}
        for seed in range(seeds):
            problem = geom(size, seed)
            best = assign(problem, "sparsified").primal_cost if size <= WITH_OPTIMUM else None
            for name, solver in SWITCHING.items():
                if size <= MOST[name]:
                    taken, answer = timed(lambda p=problem, s=solver: assign(p, s))  # type: ignore[misc]
                    error = 1 - answer.primal_cost / (best or answer.dual_cost)
                    found.setdefault(name, []).append((taken, answer, error))
        for name, runs in found.items():
            row: measure.Row = {"n": size, "variant": name, "seeds": len(runs)}
            row["gpu_ms"] = round(statistics.median(taken for taken, _, _ in runs), 1)
            if name == "sequential" and size <= ON_THE_CPU:
                start = time.perf_counter()
                assign(on_host(geom(size, 0)), SWITCHING[name])
                row["cpu_ms"] = round(1e3 * (time.perf_counter() - start))
            row["worst_percent"] = round(100 * max(error for _, _, error in runs), 5)
            row["gap_percent"] = round(100 * max(-a.gap / a.primal_cost for _, a, _ in runs), 4)
            yield row | {"switches": statistics.median(a.stats["switches"] for _, a, _ in runs)}


def evaluations(sizes: list[int]) -> Iterator[measure.Row]:
    for size in sizes:
        row: measure.Row = {"n": size}
        for place, form in (("gpu", "global"), ("gpu", "shared"), ("cpu", "shared")):
            problem = geom(size, 0)
            work = _Switching(problem if place == "gpu" else on_host(problem), form)
            work.take_any(np.random.default_rng(0))
            taken, _ = milliseconds(lambda work=work: work.evaluate(lambda: False))  # type: ignore[misc]
            row[f"{place}_ms" if place == "cpu" else f"{form}_ms"] = round(taken, 3)
        yield row


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="add the tables to tests/gpu_record.json")
    parser.add_argument("--auctions", type=int, nargs="*", default=[1000, 5000, 20_000])
    parser.add_argument("--switching", type=int, nargs="*", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--seeds", type=int, default=10)
    chosen = parser.parse_args()
    tables = {
        "auctions": auctions(chosen.auctions),
        "evaluations": evaluations(chosen.switching),
        "switching": switching(chosen.switching, chosen.seeds),
    }
    for name, rows in tables.items():
        where = measure.beside(chosen.csv, name)
        measure.show(recorded(name, rows, 60) if chosen.record else rows, where)


if __name__ == "__main__":
    main()
