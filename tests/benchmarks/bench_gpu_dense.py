"""Dense assignment on the GPU: matrices and points in its memory, solved by `sparsified`.

Matrices are uniform int32 in [0, n/10], [0, n] and [0, 10n]; points are two unrelated uniform clouds in the
unit cube, of which no matrix is made; the other families are the hard ones of the tests. All that `assign`
does is timed between two events: checks, solution and certificate; the median of five runs (of one, beyond a
second) after one that compiles. `bound_ms` is one reading of the matrix at 4.3 TB/s. `raft_ms` and `hylac_ms`
are RAPIDS RAFT's alternating tree and HyLAC's classical solver on an H200, quoted from earlier measurements,
not run here.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import cupy  # noqa: TID251  (the benchmark times the device itself)
import measure
import numpy as np
from bench_gpu import RECORD

from outbid.tracker import Assignment, AssignmentProblem, DenseCosts, PointCosts, assign

RANGES = {"integers to n/10": 0.1, "integers to n": 1.0, "integers to 10n": 10.0}
QUOTED = {
    "integers to n/10": {"raft_ms": 139, "hylac_ms": 437},
    "integers to n": {"raft_ms": 673, "hylac_ms": 630},
    "integers to 10n": {"raft_ms": 2067, "hylac_ms": 1255},
}
BYTES_A_MILLISECOND = 4.3e9


def draw(low: int, high: int, shape: tuple[int, ...]) -> Any:
    """(shape) int32 below `high`."""
    return cupy.asarray(cupy.random.randint(low, high, shape, dtype=np.int32))


def uniform(size: int, share: float) -> DenseCosts:
    """Made block by block, for a draw of more than 2^31 numbers at once may fail."""
    costs = cupy.empty((size, size), np.int32)
    cupy.random.seed(0)
    for first in range(0, size, 5000):
        block = costs[first : first + 5000]
        block[...] = draw(0, round(share * size) + 1, block.shape)
    return DenseCosts(costs)


def hard(family: str, size: int) -> DenseCosts:
    one = cupy.arange(1, size + 1, dtype=np.int32)
    cupy.random.seed(0)
    if family == "Machol-Wien":
        return DenseCosts(one[:, None] * one)
    if family == "low rank":
        a, b = (draw(0, 20, (2, size)) for _ in range(2))
        return DenseCosts(a[0][:, None] * b[0] + a[1][:, None] * b[1])
    if family == "two costs":
        return DenseCosts(1 + 999 * draw(0, 2, (size, size)))
    if family == "same rows":
        return DenseCosts(cupy.ascontiguousarray(cupy.broadcast_to(50 * one % 997, (size, size))))
    return DenseCosts(cupy.full((size, size), 7, np.int32))


def clouds(size: int, axes: int = 3) -> PointCosts:
    rng = np.random.default_rng(0)
    return PointCosts(*(cupy.asarray(rng.random((size, axes))) for _ in range(2)))


def milliseconds(problem: AssignmentProblem, repeats: int = 5) -> tuple[float, Assignment]:
    """Median time between two events; a single run beyond a second."""
    times: list[float] = []
    answer = assign(problem, "sparsified")
    while len(times) < repeats and (not times or times[0] < 1000):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        answer = assign(problem, "sparsified")
        _ = answer.gap
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop))
    return statistics.median(times), answer


def row(kind: str, costs: DenseCosts | PointCosts) -> measure.Row:
    pool = cupy.get_default_memory_pool()
    held = pool.used_bytes()
    taken, answer = milliseconds(AssignmentProblem(costs))
    told: measure.Row = {"n": costs.shape[0], "costs": kind, "ms": round(taken, 2)}
    if isinstance(costs, DenseCosts):
        told["bound_ms"] = round(costs.values.nbytes / BYTES_A_MILLISECOND, 2)
    told |= {"gap": answer.gap, "relative_gap": answer.gap / max(abs(answer.primal_cost), 1)}
    told |= {name: answer.stats[name] for name in ("passes", "phases", "rounds") if name in answer.stats}
    told["extra_mb"] = round((pool.total_bytes() - held) / 2**20)
    return told | (QUOTED.get(kind, {}) if costs.shape[0] == 20_000 else {})


def table(sizes: list[int], points: list[int], hard_size: int) -> Iterator[measure.Row]:
    made: list[tuple[str, Callable[[], Any]]] = []
    for size in sizes:
        made += [(kind, lambda s=size, r=share: uniform(s, r)) for kind, share in RANGES.items()]  # type: ignore[misc]
    made += [("points in 3D", lambda s=size: clouds(s)) for size in points]  # type: ignore[misc]
    for family in ("constant", "same rows", "two costs", "low rank"):
        made.append((family, lambda f=family: hard(f, hard_size)))  # type: ignore[misc]
    made.append(("Machol-Wien", lambda: hard("Machol-Wien", hard_size // 20)))
    for kind, make in made:
        cupy.get_default_memory_pool().free_all_blocks()
        yield row(kind, make())


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 40_000, 50_000])
    parser.add_argument("--points", type=int, nargs="*", default=[20_000, 100_000])
    parser.add_argument("--hard", type=int, default=20_000)
    parser.add_argument("--record", action="store_true", help="keep the result in tests/gpu_record.json")
    chosen = parser.parse_args()
    rows = measure.show(table(chosen.sizes, chosen.points, chosen.hard), chosen.csv)
    if chosen.record and RECORD.exists():
        record = json.loads(RECORD.read_text("utf-8")) | {"dense": rows}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
