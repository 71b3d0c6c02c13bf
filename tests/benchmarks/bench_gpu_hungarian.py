"""Date & Nagi's variants: counts and times of every stage as in their Tables 1 to 3, on the GPU and the CPU.

Uniform integers (int32) in [0, n/10], [0, n] and [0, 10n], the matrix in device memory. `seconds` is the
time of the solver without checks and certificate, the median of five runs after one that compiles; the stages
are those of the last run. `paths_1_to_5` and so on count the assignments in iterations after the initial
ones. `--cpu` adds the CPU with one thread and with all. `--record` adds the rows to tests/gpu_record.json.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import measure
import numpy as np
from numpy.typing import NDArray

from outbid import AssignmentProblem, DenseCosts
from outbid._arrays import to_device
from outbid.assignment import solve_and_certify
from outbid.assignment.hungarian import Hungarian

RANGES = {"[0, n/10]": 0.1, "[0, n]": 1.0, "[0, 10n]": 10.0}
VARIANTS = ("tree", "classical")
STAGES = ("initial_reduction", "optimality_check", "compress", "forward_pass")
STAGES += ("reverse_pass", "augmentation_pass", "dual_update")


def integers(size: int, times: float, seed: int = 0) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, round(times * size) + 1, (size, size), dtype=np.int32)


def measured(
    problem: AssignmentProblem, solver: Hungarian, repeats: int, wait: Callable[[], None]
) -> measure.Row:
    """Median seconds of the solver alone, with its counts; the gap is that of the certificate."""
    answer = solver.compute(problem)
    times = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        answer = solver.compute(problem)
        wait()
        times.append(time.perf_counter() - start)
    row: measure.Row = {"seconds": round(statistics.median(times), 4)}
    row["gap"] = solve_and_certify(problem, solver).gap
    names = ("initial_assignments", "iterations", "dual_updates", "passes", "rows_scanned")
    row |= {name: answer.stats[name] for name in names}
    row |= {name: round(answer.stats.get(f"{name}_seconds", 0.0), 4) for name in STAGES}
    return row | {name: count for name, count in answer.stats.items() if name.startswith("paths_")}


def on_the_gpu(sizes: list[int], repeats: int) -> Iterator[measure.Row]:
    import cupy  # noqa: TID251  (the benchmark waits for the device itself)

    for size in sizes:
        for name, times in RANGES.items():
            costs = to_device(integers(size, times))
            for variant in VARIANTS:
                problem = AssignmentProblem(DenseCosts(costs))
                row = measured(problem, Hungarian(variant), repeats, cupy.cuda.Device().synchronize)
                yield {"n": size, "costs": name, "variant": variant} | row


def on_the_cpu(sizes: list[int], repeats: int) -> Iterator[measure.Row]:
    for size in sizes:
        for name, times in RANGES.items():
            problem = AssignmentProblem(DenseCosts(integers(size, times)))
            for variant in VARIANTS:
                for workers in (1, None):
                    row = measured(problem, Hungarian(variant, workers), repeats, lambda: None)
                    threads = "all" if workers is None else workers
                    yield {"n": size, "costs": name, "variant": variant, "threads": threads} | row


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[20_000, 10_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cpu", type=int, nargs="*", help="sizes to solve on the CPU, too")
    parser.add_argument("--record", action="store_true", help="add the rows to tests/gpu_record.json")
    chosen = parser.parse_args()
    if chosen.sizes:
        rows = on_the_gpu(chosen.sizes, chosen.repeats)
        if chosen.record:
            from measure_gpu import recorded

            rows = recorded("hungarian", rows, 60)
        measure.show(rows, chosen.csv)
    if chosen.cpu:
        measure.show(on_the_cpu(chosen.cpu, chosen.repeats), measure.beside(chosen.csv, "cpu"))


if __name__ == "__main__":
    main()
