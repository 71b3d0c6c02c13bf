"""Date & Nagi's Tables 4 and 5 on the GPUs there are: one matrix divided over 1, 2, 4, 8 … of them.

Uniform integers in [0, 10n], each made where it is needed by a hash of its place, so that nobody holds the
matrix. Weak scaling: `--least` on one GPU and sqrt(2) times as many for each doubling; strong scaling: n is
fixed. `seconds` is the search with the initial reduction, without making the block; of `sparsified`, whose
rows are read from main memory, with that. Rows with `measured` true ran on so many GPUs through NCCL, `ranks`
says whether in a process each or in threads of one; what is not measured is listed.
`efficiency` is the paper's: t_1 / t_P, over P for strong scaling; None where one GPU cannot hold the matrix.
`whole_seconds` is what the solver takes whose search is one launch on one GPU, `same` whether matching and
column duals are those of one GPU in every instance. Up to n = 20,000 there are `--instances`, beyond one. The
table of messages has the time from one to the next. With `--record` the rows are kept in
tests/bench/gpu_long_record.json as they come, with `--movie` all GPUs link a movie as well.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import cupy  # noqa: TID251  (the benchmark makes the costs where they are used)
import measure
import numpy as np
from measure_gpu import add_to_long_record, kept
from numpy.typing import NDArray
from shards_of_gpus import Hashed, Ranks, in_processes, in_threads, message_seconds, release, searched

from outbid import AssignmentProblem, DenseCosts, Detections
from outbid.assignment.papers.hungarian import Hungarian, Matching
from outbid.assignment.papers.shards.division import divided
from outbid.compute import threads
from outbid.compute.arrays import gpu_names, to_device, to_host
from outbid.gated.linking import LinkCosts, link_frames

ROOM = 0.75
"""Of a GPU's memory that a block may take."""
_LINES = 1000
"""Rows that are brought to main memory at once."""
_MANY = 20_000
"""Largest n of which there are several instances; on a machine with one GPU, largest n of all."""
_MOST_ON_HOST = 60_000
"""Largest n of a matrix in main memory: 14 GB."""
_WHOLE = 60_000
"""Largest n that is also solved by the search in one launch."""
_MESSAGES = (
    ("gather", 98, False, 2000), ("least", 1, False, 2000), ("least", 20_000, False, 500),
    ("gather", 1 << 17, False, 50), ("gather", 1 << 23, True, 50), ("least", 1 << 23, True, 50),
)  # fmt: skip
"""Calls, their 8-byte numbers, whether these are on the GPU, and how often: the first is a pass of trees."""
PAPER = {
    ("weak", "classical"): {1: 10.42, 2: 12.48, 4: 15.03, 8: 18.58, 16: 23.59},
    ("weak", "tree"): {1: 16.28, 2: 20.26, 4: 26.51, 8: 37.03, 16: 58.32},
    ("strong", "classical"): {1: 28.50, 2: 19.47, 4: 15.07, 8: 13.00, 16: 12.03},
    ("strong", "tree"): {1: 38.30, 2: 29.21, 4: 26.22, 8: 27.47, 16: 30.21},
}
"""Seconds of the paper's K20X; strong scaling at n = 20,000."""


class Joined(NamedTuple):
    """The GPUs, some or all of them, as they are joined."""

    gpus: int
    ranks: str
    each: Ranks


class Cell(NamedTuple):
    """What is measured, and in how many instances."""

    variant: str
    size: int
    joined: Joined
    instances: int


def _sparsified(blocks: Hashed, gpus: int) -> tuple[float, Any]:
    """Seconds with reading, by so many GPUs."""
    costs = np.empty(blocks.shape, np.int32)
    for k in range(0, blocks.size, _LINES):
        costs[k : k + _LINES] = to_host(blocks.rows(k, min(k + _LINES, blocks.size)))
    problem = AssignmentProblem(DenseCosts(costs))
    start = time.perf_counter()
    answer = divided("sparsified", range(gpus), None).compute(problem)
    return time.perf_counter() - start, answer


def _hungarian(blocks: Hashed, cell: Cell) -> tuple[float, Matching]:
    """Seconds of the slowest shard."""
    results = cell.joined.each(searched, blocks, cell.variant)
    return max(seconds for seconds, _ in results), results[0][1]


def _whole(blocks: Hashed, variant: str) -> tuple[float, Any]:
    """Seconds of the solver on one GPU, without the making of the matrix."""
    problem = AssignmentProblem(DenseCosts(blocks.rows(0, blocks.size)))
    start = time.perf_counter()
    answer = Hungarian(variant).compute(problem)
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start, answer


class Known:
    """Seconds and answers of one GPU, which those of several are compared with."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, int], list[float]] = {}
        self.answers: dict[tuple[str, int, int], tuple[bytes, bytes]] = {}

    def is_same(self, cell: Cell, seed: int, found: Matching) -> bool | None:
        """Whether matching and column duals are those of one GPU; None if that has not been there."""
        mine = found.col_of_row.tobytes(), found.col_dual.tobytes()
        if cell.joined.gpus == 1:
            self.answers[cell.variant, cell.size, seed] = mine
            return None
        theirs = self.answers.get((cell.variant, cell.size, seed))
        return None if theirs is None else mine == theirs


def _row(cell: Cell, known: Known) -> measure.Row:
    """One line of the table without its efficiency."""
    variant, size, joined, _ = cell
    all_blocks = [Hashed(size, 10 * size, seed) for seed in range(cell.instances)]
    is_measured = joined.gpus <= len(gpu_names())
    row: measure.Row = {"variant": variant, "n": size, "gpus": joined.gpus}
    row |= {"ranks": joined.ranks, "measured": is_measured, "instances": cell.instances}
    if variant == "sparsified":
        runs = [_sparsified(blocks, joined.gpus) for blocks in all_blocks]
    else:
        runs = [_hungarian(blocks, cell) for blocks in all_blocks]
        joined.each(release)
        same = [known.is_same(cell, seed, found) for seed, (_, found) in enumerate(runs)]
        row["same"] = None if None in same else all(same)
    stats = runs[-1][1].stats
    row["seconds"] = round(statistics.mean(seconds for seconds, _ in runs), 4)
    row["instance_seconds"] = [round(seconds, 4) for seconds, _ in runs]
    if joined.gpus == 1 and variant != "sparsified" and size <= _WHOLE:
        alone = [_whole(blocks, variant) for blocks in all_blocks]
        row["whole_seconds"] = round(statistics.mean(seconds for seconds, _ in alone), 4)
        pairs = zip(alone, runs, strict=True)
        row["same"] = all((to_host(a.col_of_row) == b.col_of_row).all() for (_, a), (_, b) in pairs)
        joined.each(release)
    stages = ("reading", "initial_reduction", "compress", "forward_pass", "search", "augmentation_pass")
    row |= {stage: round(stats.get(f"{stage}_seconds", 0.0), 4) for stage in (*stages, "dual_update")}
    names = ("messages", "bytes_sent", "iterations", "passes", "dual_updates")
    return row | {name: stats.get(name, 0) for name in names}


def _left_out(size: int, variant: str, gpus: int) -> str:
    """Why there is no such row; empty if there is."""
    there = len(gpu_names())
    if gpus > there:
        return f"{gpus} GPUs, of which {there} are here"
    if variant == "sparsified" and size > _MOST_ON_HOST:
        return "a matrix that main memory need not hold"
    return "" if _fits(size, gpus) else "blocks that do not fit"


def _fits(size: int, gpus: int) -> bool:
    """Whether the blocks fit, one on each GPU."""
    return 4 * size**2 / gpus <= ROOM * cupy.cuda.Device().mem_info[1]


def messages(joined: list[Joined]) -> Iterator[measure.Row]:
    """Microseconds of messages."""
    for gpus, ranks, each in joined:
        for call, length, on_gpu, repeats in _MESSAGES if gpus > 1 else ():
            seconds = max(each(message_seconds, call, length, on_gpu, repeats))
            row: measure.Row = {"gpus": gpus, "ranks": ranks, "call": call, "bytes": 8 * length}
            yield row | {"on_gpu": on_gpu, "us": round(1e6 * seconds, 1)}


def scaling(tables: dict[str, list[Cell]], known: Known, seconds: float) -> Iterator[measure.Row]:
    """Rows of both tables, until the time is over; says which are left out."""
    begun = time.monotonic()
    done: dict[tuple[str, int, int, str], measure.Row] = {}
    for table, cells in tables.items():
        for cell in cells:
            variant, size, (gpus, ranks, _), _ = cell
            why = _left_out(size, variant, gpus)
            if time.monotonic() - begun > seconds:
                why = f"more than {seconds:g} s"
            if why:
                print(
                    f"# not measured: {table} {variant} n = {size:,} P = {gpus}: it takes {why}", flush=True
                )
                continue
            key = variant, size, gpus, ranks
            row = done[key] = done[key] if key in done else _row(cell, known)
            if gpus == 1:
                known.seconds[variant, size] = row["instance_seconds"]
            row = {"table": table.split(",")[0], **row, "at": round(time.monotonic() - begun)}
            yield row | _efficiency(row, known)


def _efficiency(row: measure.Row, known: Known) -> measure.Row:
    """t_1 / t_P, over P for strong scaling, of the same instances; and the paper's."""
    variant, gpus, is_weak = row["variant"], row["gpus"], row["table"] == "weak"
    over = 1 if is_weak else gpus
    least = round(row["n"] / gpus**0.5) if is_weak else row["n"]
    # Rounding may miss the size of one GPU by one.
    first = next((of for n in (0, -1, 1) if (of := known.seconds.get((variant, least + n)))), None)
    share = None
    if first is not None:
        share = round(statistics.mean(first[: row["instances"]]) / row["seconds"] / over, 3)
    paper = PAPER.get((row["table"], variant), {}) if is_weak or row["n"] == 20_000 else {}
    if gpus not in paper or (is_weak and abs(least - 10_000) > 1):
        return {"efficiency": share}
    of_paper = round(paper[1] / paper[gpus] / over, 2)
    return {"efficiency": share, "paper_seconds": paper[gpus], "paper_efficiency": of_paper}


def movie(frames: int, particles: int) -> Iterator[measure.Row]:
    """Frame pairs of a movie divided over the GPUs: the links of one, and the time of linking alone."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, particles ** (1 / 3), (particles, 3)).astype(np.float32)
    position = np.empty((frames, particles, 3))
    for frame in range(frames):
        position[frame] = place
        place += np.float32(0.15) * rng.standard_normal(place.shape, dtype=np.float32)

    def part_of(first: int, last: int) -> Detections:
        """Frames from `first` to `last`, with both."""
        number = np.repeat(np.arange(first, last + 1), particles)
        return Detections.from_table(number, position[first : last + 1].reshape(-1, 3))

    def link(gpu: int, some: Detections) -> NDArray:
        with cupy.cuda.Device(gpu):
            memory = int(0.8 * cupy.cuda.Device().mem_info[0])
            links = link_frames(some, some.position, LinkCosts(1.0), place=to_device, memory=memory)
        return links.pairs

    few = part_of(0, min(3, frames - 1))
    for gpu in range(len(gpu_names())):  # compiles, and begins each GPU
        link(gpu, few)
    first_pairs: NDArray | None = None
    gpus = 1
    while gpus <= len(gpu_names()):
        edges = [round((frames - 1) * k / gpus) for k in range(gpus + 1)]
        parts = [part_of(*edges[k : k + 2]) for k in range(gpus)]
        begun = time.perf_counter()
        found = list(threads.in_threads(lambda gpu: link(gpu, parts[gpu]), range(gpus), gpus))  # noqa: B023
        spent = time.perf_counter() - begun
        pairs = np.concatenate([some + particles * edges[k] for k, some in enumerate(found)])
        first_pairs = pairs if first_pairs is None else first_pairs
        row: measure.Row = {"gpus": gpus, "frames": frames, "particles": particles}
        yield row | {
            "seconds": round(spent, 2),
            "links": len(pairs),
            "same": bool(np.array_equal(pairs, first_pairs)),
        }
        gpus *= 2


def _warm(joined: Joined) -> None:
    """Load the kernels on every GPU, and have NCCL make its connections."""
    for variant in ("tree", "classical"):
        for size in (200, 2000):
            joined.each(searched, Hashed(size, 10 * size, 0), variant)
    if joined.ranks != "processes":
        _sparsified(Hashed(2000, 20_000, 0), joined.gpus)


def _tables(chosen: Any, all_of: list[Joined]) -> dict[str, list[Cell]]:
    """All lines: those of the paper's sizes first, then those of larger ones."""
    there = {joined.gpus for joined in all_of}
    counts = [2**k for k in range(10) if 2**k <= chosen.most]
    # What is not measured is listed.
    all_of = [*all_of, *(Joined(gpus, "", all_of[0].each) for gpus in counts if gpus not in there)]
    found: dict[str, list[Cell]] = {}
    for part in ("", ", larger"):
        weak, strong = [], []
        for variant in ("classical", "tree", "sparsified"):
            ways = [one for one in all_of if variant != "sparsified" or one.ranks != "processes"]
            for joined in ways:
                sizes = [round(least * joined.gpus**0.5) for least in chosen.least]
                for cells, given in ((weak, sizes), (strong, chosen.sizes)):
                    for size, start in zip(given, chosen.least if cells is weak else given, strict=True):
                        if (start > _MANY) == bool(part):
                            # Trees in threads take long, and longer for Python's lock: a few are enough.
                            is_aside = variant == "tree" and joined.ranks == "threads"
                            many = 1 if size > _MANY or is_aside else chosen.instances
                            if not (is_aside and size > _MANY):
                                cells.append(Cell(variant, size, joined, many))
        found |= {f"strong{part}": strong, f"weak{part}": weak}
    return found


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="keep the rows in gpu_long_record.json")
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--most", type=int, default=16, help="GPUs")
    parser.add_argument("--ranks", nargs="*", default=["processes", "threads"], help="how several are joined")
    parser.add_argument("--least", type=int, nargs="*", default=[10_000], help="n on one GPU")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[10_000, 14_142, 20_000], help="of strong scaling"
    )
    parser.add_argument("--seconds", type=float, default=400.0, help="after which no further row is begun")
    parser.add_argument("--movie", type=int, nargs=2, help="frames and particles to link by all GPUs")
    chosen = parser.parse_args()
    there = len(gpu_names())
    if there == 1:  # a check that all of it works
        print(f"# not measured on one GPU: n above {_MANY:,}, further instances, a movie", flush=True)
        chosen.instances, chosen.movie = 1, None
        chosen.sizes = [size for size in chosen.sizes if size <= _MANY]
    rows: list[measure.Row] = []
    results: dict[str, Any] = {"gpus": there, "rows": rows}
    with ExitStack() as held:
        all_of = [Joined(1, "alone", in_threads(1))]
        for gpus in (2**k for k in range(1, 10) if 2**k <= min(there, chosen.most)):
            if "processes" in chosen.ranks:
                all_of.append(Joined(gpus, "processes", held.enter_context(in_processes(gpus))))
            if "threads" in chosen.ranks:
                all_of.append(Joined(gpus, "threads", in_threads(gpus)))
        for joined in all_of:
            _warm(joined)
        results["messages"] = measure.show(messages(all_of))
        known = Known()
        found = scaling(_tables(chosen, all_of), known, chosen.seconds)
        measure.show(kept("shards", found, results, record=chosen.record))
    if chosen.movie:
        results["movie"] = measure.show(movie(*chosen.movie))
        if chosen.record:
            add_to_long_record("shards", results)


if __name__ == "__main__":
    main()
