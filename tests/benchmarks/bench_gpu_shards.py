"""Date & Nagi's Tables 4 and 5 on the GPUs there are: one matrix divided over 1, 2, 4, 8 … of them.

Uniform integers in [0, 10n], each made where it is needed by a hash of its place, so that nobody holds the
matrix. Weak scaling: n = 10,000 on one GPU and sqrt(2) times as many for each doubling; strong scaling: n is
fixed. `seconds` is the search with the initial reduction, without making the block; of `sparsified`, whose
rows are read from main memory, with that. Rows with `measured` true ran on so many GPUs through NCCL; what
is not measured is listed. `--predict` adds rows *predicted* as `outbid.simulate.replay` says, in minutes; no
speed-up of shards that take turns is stated. `efficiency` is the paper's: t_1 / t_P, over P for strong
scaling. With `--record` the rows are kept in tests/gpu_long_record.json as they come, with `--movie` all GPUs
link a movie as well.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import cupy  # noqa: TID251  (the benchmark makes the costs where they are used)
import measure
import numpy as np
from measure_gpu import add_to_long_record, kept
from numpy.typing import NDArray

from outbid import AssignmentProblem, DenseCosts, Detections
from outbid._arrays import gpu_names, to_device, to_host
from outbid._threads import in_threads
from outbid.assignment.hungarian import Found
from outbid.assignment.shards.communicator import Alone, Communicator, run_ranks
from outbid.assignment.shards.division import divided
from outbid.assignment.shards.nccl import Nccl
from outbid.assignment.shards.search import Work
from outbid.assignment.solver import Answer
from outbid.linking import LinkCosts, link_frames
from outbid.simulate.replay import MESSAGE, predicted, timed_shard

ROOM = 0.6
"""Of a GPU's memory that a block may take."""
_AT_ONCE = 1 << 26
"""Costs that are made at once."""
_LINES = 1000
"""Rows that are brought to main memory at once."""
_ALONE = 20_000
"""Largest n on a machine with one GPU, for which the script takes less than a minute."""
_MOST_ON_HOST = 60_000
"""Largest n of a matrix in main memory: 14 GB."""
PAPER = {
    ("weak", "classical"): {1: 10.42, 2: 12.48, 4: 15.03, 8: 18.58, 16: 23.59},
    ("weak", "tree"): {1: 16.28, 2: 20.26, 4: 26.51, 8: 37.03, 16: 58.32},
    ("strong", "classical"): {1: 28.50, 2: 19.47, 4: 15.07, 8: 13.00, 16: 12.03},
    ("strong", "tree"): {1: 38.30, 2: 29.21, 4: 26.22, 8: 27.47, 16: 30.21},
}
"""Seconds of the paper's K20X; strong scaling at n = 20,000."""


@dataclass(frozen=True)
class Hashed:
    """A matrix of integers up to `most`, made where it is asked for."""

    size: int
    most: int
    seed: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, self.size

    def rows(self, first: int, last: int) -> NDArray[np.int32]:
        return self._block(range(first, last), range(self.size))

    def cols(self, first: int, last: int) -> NDArray[np.int32]:
        return self._block(range(self.size), range(first, last))

    def _block(self, rows: range, cols: range) -> NDArray[np.int32]:
        made = cupy.empty((len(rows), len(cols)), np.int32)
        col = cupy.arange(cols.start, cols.stop, dtype=np.uint64)
        step = max(1, _AT_ONCE // max(1, len(cols)))
        for begin in range(0, len(rows), step):
            row = cupy.arange(rows.start + begin, min(rows.start + begin + step, rows.stop), dtype=np.uint64)
            bits = (
                row[:, None] * np.uint64(self.size) + col + np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64)
            )
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
            made[begin : begin + step] = (bits ^ (bits >> np.uint64(31))) % np.uint64(self.most + 1)
        return made


def _timed(blocks: Hashed, way: Communicator, variant: str) -> tuple[float, Found]:
    cupy.cuda.Device().synchronize()
    return timed_shard(blocks, way, Work(variant, is_on_gpu=True))


def _measured(blocks: Hashed, variant: str, gpus: int) -> tuple[float, Found]:
    def work(way: Communicator) -> tuple[float, Found]:
        with cupy.cuda.Device(way.rank):
            return _timed(blocks, way, variant)

    ways = [Alone()] if gpus == 1 else Nccl.of_host(list(range(gpus)))
    results = run_ranks(ways, work)
    return max(seconds for seconds, _ in results), results[0][1]


def _predicted(blocks: Hashed, variant: str, gpus: int) -> tuple[float, Found]:
    found = predicted(blocks, gpus, Work(variant, is_on_gpu=True))
    return found.seconds, found.answer


def _sparsified(blocks: Hashed, gpus: int) -> tuple[float, Answer]:
    """Seconds with reading, by so many GPUs."""
    costs = np.concatenate(
        [to_host(blocks.rows(k, min(k + _LINES, blocks.size))) for k in range(0, blocks.size, _LINES)]
    )
    problem = AssignmentProblem(DenseCosts(costs))
    start = time.perf_counter()
    answer = divided("sparsified", range(gpus), None).compute(problem)
    return time.perf_counter() - start, answer


def _row(table: str, variant: str, size: int, gpus: int, instances: int) -> measure.Row:
    is_measured = gpus <= len(gpu_names())
    of: Callable[[Hashed], tuple[float, Found | Answer]]
    if variant == "sparsified":
        of = partial(_sparsified, gpus=gpus)
    else:
        of = partial(_measured if is_measured else _predicted, variant=variant, gpus=gpus)
    runs = [of(Hashed(size, 10 * size, seed)) for seed in range(instances)]
    stats = runs[-1][1].stats
    row: measure.Row = {"table": table, "variant": variant, "n": size, "gpus": gpus, "measured": is_measured}
    row["seconds"] = round(statistics.mean(seconds for seconds, _ in runs), 4)
    stages = ("initial_reduction", "compress", "forward_pass", "search", "augmentation_pass", "dual_update")
    row |= {stage: round(stats.get(f"{stage}_seconds", 0.0), 4) for stage in stages}
    names = ("messages", "bytes_sent", "iterations", "passes", "dual_updates")
    return row | {name: stats.get(name, 0) for name in names}


def _left_out(size: int, variant: str, gpus: int, *, predict: bool) -> str:
    """Why there is no such row; empty if there is."""
    there = len(gpu_names())
    if gpus > there and (variant == "sparsified" or not predict):
        return f"{gpus} GPUs, of which {there} are here"
    if variant == "sparsified" and size > _MOST_ON_HOST:
        return "a matrix that main memory need not hold"
    return "" if _fits(size, gpus) else "blocks that do not fit"


def _fits(size: int, gpus: int) -> bool:
    """Whether the blocks fit: one on each GPU, or all of them on one."""
    share = gpus if gpus <= len(gpu_names()) else 1
    return 4 * size**2 / share <= ROOM * cupy.cuda.Device().mem_info[1]


def scaling(
    tables: dict[str, list[tuple[int, int]]], instances: int, seconds: float, *, predict: bool
) -> Iterator[measure.Row]:
    """Rows of both tables, until the time is over; says which are left out."""
    begun = time.monotonic()
    _timed(Hashed(200, 2000, 0), Alone(), "tree")
    _timed(Hashed(200, 2000, 0), Alone(), "classical")
    for table, cells in tables.items():
        for variant in ("classical", "tree", "sparsified"):
            alone: dict[int, float] = {}
            for size, gpus in cells:
                why = _left_out(size, variant, gpus, predict=predict)
                if time.monotonic() - begun > seconds:
                    why = f"more than {seconds:g} s"
                if why:
                    print(
                        f"# not measured: {table} {variant} n = {size:,} P = {gpus}: it takes {why}",
                        flush=True,
                    )
                    continue
                row = _row(table, variant, size, gpus, instances)
                cupy.get_default_memory_pool().free_all_blocks()
                first = alone.setdefault(0 if table == "weak" else size, float(row["seconds"]))
                share = first / float(row["seconds"]) / (1 if table == "weak" else gpus)
                paper = PAPER.get((table, variant), {}) if table == "weak" or size == 20_000 else {}
                row["efficiency"] = round(share, 3)
                of_paper = paper[1] / paper[gpus] / (1 if table == "weak" else gpus) if gpus in paper else 0.0
                yield row | {"paper_seconds": paper.get(gpus, 0.0), "paper_efficiency": round(of_paper, 2)}


def movie(frames: int, particles: int) -> Iterator[measure.Row]:
    """Frame pairs of a movie divided over the GPUs: the links of one, and the time."""
    rng = np.random.default_rng(0)
    start = rng.uniform(0, particles ** (1 / 3), (1, particles, 3))
    place = start + np.cumsum(rng.normal(0, 0.15, (frames, particles, 3)), axis=0)
    seen = Detections.from_table(np.repeat(np.arange(frames), particles), place.reshape(-1, 3))
    known: bytes = b""
    gpus = 1
    while gpus <= len(gpu_names()):
        edges = [round((frames - 1) * k / gpus) for k in range(gpus + 1)]

        def part(gpu: int, edges: list[int] = edges) -> NDArray:
            first, last = edges[gpu : gpu + 2]
            begin, end = seen.frame_start[[first, last + 1]]
            some = Detections.from_table(seen.frame[begin:end], seen.position[begin:end])
            with cupy.cuda.Device(gpu):
                memory = int(0.8 * cupy.cuda.Device().mem_info[0])
                links = link_frames(some, some.position, LinkCosts(1.0), place=to_device, memory=memory)
            return links.pairs + begin

        begun = time.perf_counter()
        pairs = np.concatenate(list(in_threads(part, range(gpus), gpus)))
        spent = time.perf_counter() - begun
        known = known or pairs.tobytes()
        same = pairs.tobytes() == known
        yield {
            "gpus": gpus,
            "frames": frames,
            "particles": particles,
            "seconds": round(spent, 2),
            "same": same,
        }
        gpus *= 2


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="keep the rows in tests/gpu_long_record.json")
    parser.add_argument("--predict", action="store_true", help="rows of more GPUs than there are")
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--most", type=int, default=16, help="GPUs")
    parser.add_argument("--least", type=int, default=10_000, help="n on one GPU")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[10_000, 14_142, 20_000], help="of strong scaling"
    )
    parser.add_argument("--seconds", type=float, default=400.0, help="after which no further row is begun")
    parser.add_argument("--movie", type=int, nargs=2, help="frames and particles to link by all GPUs")
    chosen = parser.parse_args()
    if len(gpu_names()) == 1:  # a check that all of it works
        print(f"# not measured on one GPU: n above {_ALONE:,}, further instances, a movie", flush=True)
        chosen.instances, chosen.movie = 1, None
        chosen.sizes = [size for size in chosen.sizes if size <= _ALONE]
    counts = [2**k for k in range(10) if 2**k <= chosen.most]
    weak = [(round(chosen.least * gpus**0.5), gpus) for gpus in counts]
    strong = [(size, gpus) for size in chosen.sizes for gpus in counts]
    tables = {"weak": weak, "strong": strong}
    rows: list[measure.Row] = []
    results: dict[str, Any] = {"gpus": len(gpu_names()), "message_seconds": MESSAGE, "rows": rows}
    found = scaling(tables, chosen.instances, chosen.seconds, predict=chosen.predict)
    measure.show(kept("shards", found, results, record=chosen.record), chosen.csv)
    if chosen.movie:
        results["movie"] = measure.show(movie(*chosen.movie), measure.beside(chosen.csv, "movie"))
        if chosen.record:
            add_to_long_record("shards", results)


if __name__ == "__main__":
    main()
