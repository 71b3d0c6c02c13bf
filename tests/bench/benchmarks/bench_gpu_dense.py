"""Dense assignment on the GPU: matrices and points in device memory, solved by `sparsified`.

Matrices are uniform int32 in [0, n/10], [0, n] and [0, 10n]; points are two unrelated uniform clouds in the
unit cube, solved without a matrix; the other families are those of the tests. Everything that `assign` does
is timed between two events: checks, solution and certificate. The median of five runs counts (a single run if
it takes over a second) after one that compiles; for the other families one run (the first, which may compile,
if it takes over three seconds). `bound_ms` is one reading of the matrix at 4.3 TB/s. `raft_ms` and `hylac_ms`
are RAPIDS RAFT's alternating tree and HyLAC's classical solver on an H200, quoted from earlier measurements,
not run here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cupy  # noqa: TID251  (the benchmark times the device itself)
import measure
import numpy as np
from measure_gpu import milliseconds, once, recorded

from outbid import Assignment, AssignmentProblem, DenseCosts, PointCosts, assign
from outbid.assignment.points import dense_of

RANGES = {"integers to n/10": 0.1, "integers to n": 1.0, "integers to 10n": 10.0}
QUOTED = {
    "integers to n/10": {"raft_ms": 139, "hylac_ms": 437},
    "integers to n": {"raft_ms": 673, "hylac_ms": 630},
    "integers to 10n": {"raft_ms": 2067, "hylac_ms": 1255},
}
FAMILIES = ("constant", "same rows", "two costs", "low rank", "Machol-Wien", "nearly Machol-Wien")
FAMILIES += ("1:2", "2:1", "nine of ten forbidden", "real uniform", "distances in 2D", "distances in 3D")
FAMILIES += ("clustered in 2D", "clustered in 3D", "GEOM, largest")
BYTES_A_MILLISECOND = 4.3e9


def draw(low: int, high: int, shape: tuple[int, ...]) -> Any:
    """(shape) int32 below `high`."""
    return cupy.asarray(cupy.random.randint(low, high, shape, dtype=np.int32))


def uniform(size: int, share: float) -> DenseCosts:
    """Drawn block by block, because drawing more than 2^31 numbers at once may fail."""
    costs = cupy.empty((size, size), np.int32)
    cupy.random.seed(0)
    for first in range(0, size, 5000):
        block = costs[first : first + 5000]
        block[...] = draw(0, round(share * size) + 1, block.shape)
    return DenseCosts(costs)


def family(name: str, size: int) -> DenseCosts:
    """A matrix of the families of tests/problems.py; integers as int32, others as float64."""
    one = cupy.arange(1, size + 1, dtype=np.int32)
    rng = np.random.default_rng(0)
    cupy.random.seed(0)
    if name.endswith("Machol-Wien"):
        costs = one[:, None] * one
        return DenseCosts(costs if name[0] == "M" else costs + draw(0, size + 1, costs.shape))
    if name == "low rank":
        a, b = (draw(0, 20, (2, size)) for _ in range(2))
        return DenseCosts(a[0][:, None] * b[0] + a[1][:, None] * b[1])
    if name == "two costs":
        return DenseCosts(1 + 999 * draw(0, 2, (size, size)))
    if name == "same rows":
        return DenseCosts(cupy.ascontiguousarray(cupy.broadcast_to(50 * one % 997, (size, size))))
    if name == "constant":
        return DenseCosts(cupy.full((size, size), 7, np.int32))
    if name == "1:2":
        return DenseCosts(draw(0, size + 1, (size // 2, size)))
    if name == "2:1":
        return DenseCosts(draw(0, size + 1, (size, size // 2)))
    if name in ("real uniform", "nine of ten forbidden"):
        costs = cupy.asarray(cupy.random.random((size, size)))
        return DenseCosts(costs if name == "real uniform" else cupy.where(costs < 0.1, costs, np.inf))
    if name == "GEOM, largest":
        points = cupy.asarray(1000 * rng.random((size, 2)))
        return DenseCosts(-dense_of(PointCosts(points, points)).values)
    points = [rng.random((size, int(name[-2]))) for _ in range(2)]
    if name.startswith("clustered"):
        centre = rng.random((5, int(name[-2])))
        points = [centre[rng.integers(0, 5, size)] + 0.02 * rng.normal(size=p.shape) for p in points]
    return dense_of(PointCosts(*map(cupy.asarray, points)))


def clouds(size: int, axes: int = 3) -> PointCosts:
    rng = np.random.default_rng(0)
    return PointCosts(*(cupy.asarray(rng.random((size, axes))) for _ in range(2)))


def row(kind: str, costs: DenseCosts | PointCosts) -> measure.Row:
    pool = cupy.get_default_memory_pool()
    held = pool.used_bytes()

    def work() -> Assignment:
        answer = assign(AssignmentProblem(costs), "sparsified")
        _ = answer.gap
        return answer

    taken, answer = (once if kind in FAMILIES else milliseconds)(work)
    result: measure.Row = {"n": max(costs.shape), "costs": kind, "ms": round(taken, 2)}
    if isinstance(costs, DenseCosts):
        result["bound_ms"] = round(costs.values.nbytes / BYTES_A_MILLISECOND, 2)
    result |= {"gap": answer.gap, "relative_gap": answer.gap / max(abs(answer.primal_cost), 1)}
    result |= {"status": answer.status.name}
    result |= {name: answer.stats[name] for name in ("passes", "phases", "rounds") if name in answer.stats}
    result["extra_mb"] = round((pool.total_bytes() - held) / 2**20)
    return result | (QUOTED.get(kind, {}) if costs.shape[0] == 20_000 else {})


def table() -> Iterator[measure.Row]:
    made: list[tuple[str, Callable[[], Any]]] = []
    for size in (20_000, 40_000, 50_000):
        made += [(kind, lambda s=size, r=share: uniform(s, r)) for kind, share in RANGES.items()]  # type: ignore[misc]
    made += [("points in 3D", lambda s=size: clouds(s)) for size in (20_000, 100_000)]  # type: ignore[misc]
    made += [(name, lambda f=name: family(f, 20_000)) for name in FAMILIES]  # type: ignore[misc]
    for kind, make in made:
        cupy.get_default_memory_pool().free_all_blocks()
        yield row(kind, make())


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="add the rows to gpu_record.json")
    chosen = parser.parse_args()
    measure.show(recorded("dense", table(), 90) if chosen.record else table())


if __name__ == "__main__":
    main()
