"""Batches: plan which frame pairs a GPU links at once, from the memory that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..assignment.components import matrix_bytes
from ..geometry.gating import pairs_within

PAIR_BYTES = 16
"""Bytes that a candidate pair takes on a GPU: index, squared distance and cost."""
DETECTION_BYTES = 240
"""Bytes that a detection takes on a GPU, as source and as target: cells, prices, bids, paths, certificate."""
BATCH_BYTES = 136_000_000
"""Bytes that a batch takes in addition: space for the trees of all searches at once."""
_MARGIN = 1.25
"""Safety factor, because a sample can underestimate the number of candidates."""
_FRAMES, _SOURCES, _TARGETS = 8, 500, 20_000
"""Sample for this estimate: frame pairs, and detections in each."""
FULL = 2_000_000
"""Detections that keep a GPU busy while other batches are copied."""
ABREAST = 8
"""Frame pairs at once of a solver whose many rounds by few rows leave most of a GPU idle."""
LANES = 3
"""Batches in progress at once: one is copied in, one is linked, one is copied out."""


@dataclass(frozen=True)
class Batches:
    """Counts of the batches of a movie, and of the fallbacks.

    Parameters
    ----------
    count : int
        Batches that were solved on the GPU.
    planned_bytes : int
        GPU memory that was planned for the batches in progress at the same time.
    halvings : int
        How often a batch did not fit the memory in spite of the plan, and was halved.
    on_host : int
        Frame pairs (or the gap closing) that were solved on the host because they did not fit the GPU alone.
    without_kernels : int
        Batches whose candidates were found on the GPU and solved on the host, for the solver has no kernels
        for them there.
    """

    count: int = 0
    planned_bytes: int = 0
    halvings: int = 0
    on_host: int = 0
    without_kernels: int = 0

    def __add__(self, other: Batches) -> Batches:
        """Sum of the counts of two accounts."""
        return Batches(
            self.count + other.count, max(self.planned_bytes, other.planned_bytes),
            self.halvings + other.halvings, self.on_host + other.on_host,
            self.without_kernels + other.without_kernels,
        )  # fmt: skip

    @property
    def fallbacks(self) -> int:
        """Number of times that a step planned for the GPU had to run elsewhere."""
        return self.halvings + self.on_host + self.without_kernels

    def stages(self) -> dict[str, str]:
        """Devices on which candidate pairs were found and assignments were solved: gpu, cpu, or both.

        Examples
        --------
        >>> Batches(count=0, without_kernels=3).stages()
        {'candidates_on': 'gpu', 'solved_on': 'cpu'}
        >>> Batches(count=3, on_host=1).stages()
        {'candidates_on': 'gpu and cpu', 'solved_on': 'gpu and cpu'}
        """
        return {
            "candidates_on": _where(self.count + self.without_kernels, self.on_host),
            "solved_on": _where(self.count, self.on_host + self.without_kernels),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Batches:
        """Read the counts that `as_dict` returned."""
        return cls(*(given[name] for name in cls().as_dict()))

    def as_dict(self) -> dict[str, int]:
        """Counts of batches and fallbacks, as the run record states them."""
        counts = asdict(self)
        return {"batches": counts.pop("count"), **counts}


def _where(on_gpu: int, on_host: int) -> str:
    return "gpu and cpu" if on_gpu and on_host else "cpu" if on_host else "gpu"


RECORDED = (
    "device", "fallbacks", *Batches().as_dict(), *Batches().stages(), "margins_on", "swept_on",
    "unmatched_pins",
)  # fmt: skip
"""Keys of a run record that state the device of each stage, the GPU memory, and pins that are left out."""


def account(
    batches: Batches, device: str, *, exact_margins: bool, decided: str | None = None
) -> dict[str, int | str]:
    """Entries of a run record: the device of each stage and, on a GPU, the batches.

    Parameters
    ----------
    batches : Batches
    device : {"cpu", "gpu"}
        Device to which the points were copied.
    exact_margins : bool
        Whether margins were found by solving again, which only the host does.
    decided : {"cpu", "gpu"}, optional
        Where links by a learned model were decided; none with a gate.

    Examples
    --------
    >>> account(Batches(), "cpu", exact_margins=False)
    {'device': 'cpu', 'fallbacks': 0}
    >>> account(Batches(without_kernels=2), "gpu", exact_margins=False)["device"]
    'cpu'
    >>> account(Batches(1), "gpu", exact_margins=False, decided="cpu")["swept_on"]
    'gpu'
    """
    if device != "gpu":
        return {"device": device, "fallbacks": batches.fallbacks}
    stages = batches.stages()
    solved = stages["solved_on"]
    if decided:  # the CPU chooses a sample, at least
        where = _where(batches.count, 1)
        return {"device": where, "fallbacks": batches.fallbacks, "swept_on": solved, "solved_on": decided}
    counts = {"fallbacks": batches.fallbacks, **batches.as_dict()}
    return {"device": solved, **counts, **stages, "margins_on": "cpu" if exact_margins else solved}


def sentence(stats: Mapping[str, object]) -> str:
    r"""A sentence on the GPU batches of a run, to append to other sentences; empty for a run on a CPU.

    Examples
    --------
    >>> both = {"batches": 34, "planned_bytes": 2_100_000_000, "halvings": 1, "on_host": 0}
    >>> sentence(both | {"without_kernels": 0, "solver": "auction"})
    '\nThe GPU linked 34 batches, planned to take 2.1 GB at once: 1 halved, 0 left to the CPU.'
    >>> sentence(both | {"batches": 0, "without_kernels": 34, "solver": "greedy"}).splitlines()[-1]
    'The solver greedy has no GPU kernels for such problems: 34 batches were solved on the CPU.'
    """
    if "batches" not in stats:
        return ""
    planned = f"{float(str(stats['planned_bytes'])) / 1e9:.2g} GB at once"
    halved = f"{stats['halvings']} halved, {stats['on_host']} left to the CPU"
    line = f"\nThe GPU linked {stats['batches']} batches, planned to take {planned}: {halved}."
    if not stats["without_kernels"]:
        return line
    return (
        f"{line}\nThe solver {stats['solver']} has no GPU kernels for such problems: "
        f"{stats['without_kernels']} batches were solved on the CPU."
    )


class Plan(NamedTuple):
    """Ranges of frames (first, last), each sharing its last frame with the next; how many at once; bytes."""

    runs: list[tuple[int, int]]
    at_once: int
    planned_bytes: int


def plan(frame_start: NDArray[np.int64], pairs_a_detection: float, memory: int) -> Plan:
    """Divide a movie into batches that keep a GPU busy and fit its memory, several at once.

    Parameters
    ----------
    frame_start : (F + 1,) int64 array
        As in `Detections`.
    pairs_a_detection : float
        Candidates that a detection has in the next frame, as `candidates_each` estimates.
    memory : int
        Bytes that may be used. A frame pair that needs more is a batch by itself.

    Examples
    --------
    >>> plan(np.arange(0, 50_000_000, 1_000_000), 14.5, memory=10**11).runs[:2]
    [(0, 2), (2, 4)]
    >>> plan(np.arange(0, 50_000_000, 1_000_000), 14.5, memory=10**9)[1:]
    (1, 666000000)
    """
    needed = bytes_of_frames(frame_start, pairs_a_detection)
    most = int(needed.max(initial=0))
    at_once = max(1, min(LANES, memory // (most + BATCH_BYTES)))
    cuts = runs(frame_start, FULL, needed, memory // at_once - BATCH_BYTES)
    before = np.concatenate([[0], np.cumsum(needed)])
    taken = sorted((int(before[last] - before[first]) + BATCH_BYTES for first, last in cuts), reverse=True)
    at_once = min(at_once, max(1, len(taken)))
    return Plan(cuts, at_once, sum(taken[:at_once]))


def plan_pairs(
    frame_start: NDArray[np.int64], pairs_a_detection: float, memory: int, *, as_matrix: bool
) -> Plan:
    """A plan with every frame pair as its own batch; dense matrices are solved one after the other.

    Examples
    --------
    >>> plan_pairs(np.array([0, 1000, 2000, 3000]), 14.5, 10**10, as_matrix=True)
    Plan(runs=[(0, 1), (1, 2)], at_once=1, planned_bytes=156530000)
    >>> plan_pairs(np.array([0, 1000, 2000, 3000]), 14.5, 10**10, as_matrix=False).at_once
    2
    """
    needed = int(bytes_of_frames(frame_start, pairs_a_detection).max(initial=0)) + BATCH_BYTES
    cuts = runs(frame_start, 0)
    if as_matrix:
        return Plan(cuts, 1, needed + largest_matrix(frame_start))
    at_once = max(1, min(ABREAST, len(cuts), memory // needed))
    return Plan(cuts, at_once, at_once * needed)


def largest_matrix(frame_start: NDArray[np.int64]) -> int:
    """Bytes of the largest dense cost matrix between two consecutive frames.

    Examples
    --------
    >>> largest_matrix(np.array([0, 1000, 2000]))
    20000000
    """
    size = np.diff(frame_start)
    return matrix_bytes(1, int((size[1:] * size[:-1]).max(initial=0)))


def bytes_of_frames(frame_start: NDArray[np.int64], pairs_a_detection: float) -> NDArray[np.int64]:
    """(F,) int64: memory that linking each frame to the next adds to a batch."""
    size = np.diff(frame_start).astype(np.float64)
    after = np.append(size[1:], 0)
    usual = size[size > 0].mean() if size.any() else 1.0
    # As many times denser the next frame, as many times more candidates.
    pairs = pairs_a_detection * size * after / usual
    return np.minimum(_bytes((size + after) / 2, pairs), 2.0**62).astype(np.int64)


def bytes_for(detections: float, pairs: float) -> int:
    """Bytes that a batch takes on a GPU, given its source or target detections and its candidates.

    Examples
    --------
    >>> bytes_for(1_000_000, 14_500_000)
    666000000
    """
    return int(_bytes(detections, pairs)) + BATCH_BYTES


def _bytes(detections: Any, pairs: Any) -> Any:
    return DETECTION_BYTES * detections + PAIR_BYTES * _MARGIN * pairs


def room_for_candidates(detections: int, memory: int) -> int:
    """Bytes left for the candidates of a batch with this many detections, as `pairs_within` counts them.

    Examples
    --------
    >>> room_for_candidates(1_000_000, 666_000_000), room_for_candidates(0, 1000)
    (217500000, 0)
    """
    return max(0, memory - DETECTION_BYTES * detections - BATCH_BYTES) * 12 // PAIR_BYTES


def runs(
    frame_start: NDArray[np.int64], most: int, needed: NDArray[np.int64] | None = None, memory: int = 0
) -> list[tuple[int, int]]:
    """Ranges of frames (first, last) with about `most` detections each; neighbours share one frame.

    With the bytes `needed` by each frame and the next, (F,) int64, those of a run fit the memory, if those of
    every single pair do.
    """
    found, first, final = [], 0, len(frame_start) - 2
    before = None if needed is None else np.concatenate([[0], np.cumsum(needed)])
    # Only frames that hold something: numbers may be times, with many empty frames between.
    for frame in np.nonzero(np.diff(frame_start))[0].tolist():
        full = frame_start[frame + 1] - frame_start[first] > most
        if before is not None and before[frame + 1] - before[first] > memory:
            full = True
        if full and frame > first:
            found.append((first, frame))
            first = frame
    if final > first:
        found.append((first, final))
    return found


def candidates_each(position: NDArray[np.float64], frame_start: NDArray[np.int64], radius: float) -> float:
    """Mean number of candidates of a detection in the next frame, estimated from a sample."""
    sizes = np.diff(frame_start)
    frames = np.nonzero((sizes[:-1] > 0) & (sizes[1:] > 0))[0]
    found = counted = 0.0
    for frame in frames[:: max(1, len(frames) // _FRAMES)].tolist():
        begin, middle, end = frame_start[frame : frame + 3].tolist()
        one_in = -(-(end - middle) // _TARGETS)
        sources = position[begin : middle : -(-(middle - begin) // _SOURCES)]
        targets = position[middle:end:one_in]
        starts = np.array([0, len(sources)]), np.array([0, len(targets)])
        found += one_in * float(pairs_within(sources, targets, radius, *starts).indptr[-1])
        counted += len(sources)
    return found / counted if counted else 0.0
