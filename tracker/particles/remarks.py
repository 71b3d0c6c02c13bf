"""Remarks on the input: sentences about detections that can hardly be linked or are duplicated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..compute.threads import FEW, in_threads
from .detections import Detections

_MANY_MISSING = 100
"""Gap length in frames above which a gate for one step hardly distinguishes particles."""
_COMPARED = 500_000
"""Detections that a thread compares with each other; at least those of one frame."""
_PAIRS = 50
"""Frames among which the nearest detections are looked for."""


def at_first_sight(
    detections: Detections,
    *,
    max_distance: float | None = None,
    max_gap: int | None = None,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> list[str]:
    """Sentences on detections that can hardly be linked, on a `max_gap` too long, and on a second scale.

    Parameters
    ----------
    detections : Detections
    max_distance, max_gap, spacing
        As in `TrackingSettings`.

    Examples
    --------
    >>> at_first_sight(Detections.from_table([3, 3], [[0, 0, 0], [0, 0, 1]]))
    ['All 2 detections are in frame 3, so nothing is linked. Is the column frame right?']
    """
    count = len(detections)
    if not has_two_frames(detections):
        return [on_one_frame(count, detections.first_frame)]
    messages = scaled_twice(detections.unit, spacing)
    if _at_one_position(detections.position):
        position = ", ".join(f"{value:g}" for value in detections.position[0])
        messages.append(
            f"{_all_of(count)} at one position, z, y, x = {position}, so links are arbitrary. "
            "Are the columns z, y, x right?"
        )
    return messages + _on_gaps(detections.frame_count, max_distance, max_gap or 0)


def scaled_twice(unit: str, spacing: Sequence[float] | None) -> list[str]:
    """A sentence if positions are in a unit of length and are also multiplied by a voxel size.

    Examples
    --------
    >>> scaled_twice("micrometer", (2.0, 0.5, 0.5))
    ['Positions are already in micrometer, and --spacing multiplies them again. Omit it if it is not needed.']
    >>> scaled_twice("pixel", (2.0, 0.5, 0.5)), scaled_twice("micrometer", (1.0, 1.0, 1.0))
    ([], [])
    """
    if spacing is None or tuple(spacing) == (1, 1, 1) or unit == "pixel":
        return []
    return [
        f"Positions are already in {unit}, and --spacing multiplies them again. Omit it if it is not needed."
    ]


def on_one_frame(count: int, frame: int) -> str:
    """A sentence that states that all detections are in one frame.

    Examples
    --------
    >>> on_one_frame(1, 7)
    'The only detection is in frame 7, so nothing is linked. Is the column frame right?'
    """
    if count == 0:
        return "There are no detections, so nothing is linked. Is this the right file?"
    return f"{_all_of(count)} in frame {frame}, so nothing is linked. Is the column frame right?"


def _all_of(count: int) -> str:
    return "The only detection is" if count == 1 else f"All {count} detections are"


def has_two_frames(detections: Detections) -> bool:
    """Whether two frames contain detections; otherwise nothing can be linked."""
    return len(detections) > 0 and detections.frame[0] != detections.frame[-1]


def _at_one_position(position: NDArray[np.float64]) -> bool:
    return bool((position[-1] == position[0]).all() and (position == position[0]).all())


def _on_gaps(frames: int, max_distance: float | None, max_gap: int) -> list[str]:
    most = frames - 2
    if max_gap > max(most, _MANY_MISSING):
        return [
            f"max_gap is {max_gap}, but a track in {frames} frames can miss at most {most}: it acts "
            f"as {most}."
        ]
    if max_distance is not None and max_gap > _MANY_MISSING:
        return [
            f"max_gap is {max_gap}: over so many frames a gate of {max_distance:g} hardly distinguishes "
            "particles. Omit the max distance to learn how often particles are missed."
        ]
    return []


def without_links(
    detections: Detections,
    links: object,
    max_distance: float | None,
    max_gap: int,
    scale: tuple[float, ...] = (1.0, 1.0, 1.0),
) -> list[str]:
    """A sentence on why a run with a gate found no links; empty if unknown or reported by `at_first_sight`.

    Parameters
    ----------
    detections : Detections
    links : int
        How many there are.
    max_distance, max_gap
        As in `TrackingSettings`.
    scale : (float, float, float)
        Factors of the positions along z, y, x.

    Examples
    --------
    >>> without_links(Detections.from_table([0, 30], [[0, 0, 0], [0, 0, 1]]), 0, 2.0, 0)
    ['No two frames with detections are less than 30 apart; max_gap is 0. To link over this gap: --max-gap \
29; if frames are times: --columns frame=NAME/30 (Python: max_gap=, columns=).']
    >>> without_links(Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 9]]), 0, 2.0, 0)
    ['The nearest detections of two frames are 9 apart, and max_distance is 2. Is the unit right?']
    """
    from scipy.spatial import cKDTree

    frames = np.unique(detections.frame)
    if links or len(frames) < 2 or max_distance is None:
        return []
    apart = int(np.diff(frames).min())
    if apart > max_gap + 1:
        return [
            f"No two frames with detections are less than {apart} apart; max_gap is {max_gap}. To link over "
            f"this gap: --max-gap {apart - 1}; if frames are times: --columns frame=NAME/{apart} (Python: "
            "max_gap=, columns=)."
        ]
    nearest = np.inf
    for first, second in pairwise(frames[:_PAIRS].tolist()):
        one, other = (
            detections.position[detections.rows_of(frame)] * np.asarray(scale) for frame in (first, second)
        )
        nearest = min(nearest, float(cKDTree(one).query(other)[0].min()))
    if nearest <= max_distance:
        return []
    return [
        f"The nearest detections of two frames are {nearest:.4g} apart, and max_distance is "
        f"{max_distance:g}. Is the unit right?"
    ]


@dataclass(frozen=True)
class Doubled:
    """Number of detections at exactly the position of another one of their frame, and where the first is."""

    count: int = 0
    where: str = ""

    def __add__(self, other: Doubled) -> Doubled:
        """Sum of two counts; the first duplicate is that of the earlier part."""
        return Doubled(self.count + other.count, self.where or other.where)

    def messages(self) -> list[str]:
        """A sentence about the duplicates; empty if there are none."""
        if not self.count:
            return []
        lie = "detection has exactly the position of another one in its frame," if self.count == 1 else (
            "detections have exactly the position of another one in their frame, the first"
        )  # fmt: skip
        return [f"{self.count} {lie} {self.where}. Are rows doubled? Each is linked as a separate particle."]


def doubled(detections: Detections) -> Doubled:
    """Count detections at exactly the position of another one in their frame.

    Examples
    --------
    >>> doubled(Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 0, 1]]))
    Doubled(count=1, where='in frame 1 at z, y, x = 0, 0, 1')
    >>> doubled(Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 0]])).messages()
    []
    """
    if len(detections) == 0 or _at_one_position(detections.position):  # `at_first_sight` reports this
        return Doubled()
    frame = detections.frame
    cuts = np.unique(np.searchsorted(frame, frame[::_COMPARED])).tolist()
    blocks = [detections.take(slice(*ends)) for ends in pairwise([*cuts, len(frame)])]
    return sum(in_threads(_doubled_among, blocks, min(FEW, len(blocks))), Doubled())


def _doubled_among(detections: Detections) -> Doubled:
    """See `doubled`; equal rows have the same hash, and few others have."""
    code = _hashed(detections)
    ordered = np.sort(code)
    rows = np.nonzero(np.isin(code, ordered[1:][ordered[1:] == ordered[:-1]]))[0]
    # 0.0 makes -0 equal to 0.
    table = np.column_stack([detections.frame[rows], detections.position[rows] + 0.0])
    first = np.unique(table, axis=0, return_index=True)[1]
    again = np.delete(rows, first)
    if not len(again):
        return Doubled()
    position = ", ".join(f"{value:g}" for value in detections.position[again[0]])
    return Doubled(len(again), f"in frame {detections.frame[again[0]]} at z, y, x = {position}")


def _hashed(detections: Detections) -> NDArray[np.uint64]:
    """(N,) uint64: a hash of frame and position."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    code = detections.frame.astype(np.uint64) * odd
    for column in detections.position.T:
        code ^= (column + 0.0).view(np.uint64)
        code *= odd
        code ^= code >> np.uint64(29)
    return code
