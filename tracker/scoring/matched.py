"""Match the detections of tracks and truth once; all scores use this matching."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..assignment import AssignmentProblem, SparseCosts, assign
from ..gated.matching import match
from ..geometry.gating import pairs_within
from ..particles.detections import Detections
from ..particles.tracks import Tracks

_MOST_PAIR_BYTES = 1 << 29
"""Memory for the pairs of near detections as the gating makes them; the scores need ten times as much."""


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Pairs of two detections seen in one frame nearer to each other than the gate, sorted by frame.

    Parameters
    ----------
    true, found : (P,) int64 arrays
        Row of the detection in the truth and in the tracks.
    distance : (P,) float64 array
        In the unit of the positions.
    """

    true: NDArray[np.int64]
    found: NDArray[np.int64]
    distance: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrackPairs:
    """Pairs of a true and a found track, each once; `P` pairs of detections belong to `U` of them.

    Parameters
    ----------
    true, found : (U,) int64 arrays
        Track numbers, sorted by true, then found.
    count : (U,) int64 array
        Pairs of detections of each pair of tracks.
    member_of : (P,) int64 array
        The pair of tracks of each pair of detections.
    """

    true: NDArray[np.int64]
    found: NDArray[np.int64]
    count: NDArray[np.int64]
    member_of: NDArray[np.int64]

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(U,) float64: sum of `values` (P,) over the members of each pair of tracks."""
        return np.bincount(self.member_of, weights=values, minlength=len(self.true)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class MatchedTracks:
    """Tracks and truth, with the matching of their detections.

    Parameters
    ----------
    tracks, truth : Tracks
        N and M detections.
    gate : float
        Two detections nearer than this may be the same, in the unit of the positions.
    known : (N,) int64 array or None
        Row in the truth of each detection if both sides hold the same detections; None if they differ.
    link_rule : {"particle", "edge"}
        Which links are right, see `outbid.scoring.links.right_links`.
    """

    tracks: Tracks
    truth: Tracks
    gate: float
    known: NDArray[np.int64] | None
    link_rule: str = "particle"

    @cached_property
    def true_of(self) -> NDArray[np.int64]:
        """(N,) int64: the true detection that each found one stands for, -1 for none.

        If the detections are not the same, the pairing of each frame is the one with the largest
        sum of ``gate - distance``.
        """
        if self.known is not None:
            return self.known
        found, true = self.tracks.detections, self.truth.detections
        frames = np.union1d(found.frame, true.frame)
        # Numbers without holes: a stray frame far away then costs match() no memory.
        block = [np.searchsorted(frames, side.frame) for side in (found, true)]
        paired = match(
            found.position,
            true.position,
            self.gate,
            source_block=block[0],
            target_block=block[1],
            most_bytes=_MOST_PAIR_BYTES,
        )
        row = np.full(len(found), -1, dtype=np.int64)
        # A pair at the gate does not count in the other scores, so it does not count here either.
        near = paired.cost < self.gate
        row[paired.source[near]] = paired.target[near]
        return row

    @cached_property
    def near(self) -> NearPairs:
        """Pairs of true and found detections nearer than the gate; only identical ones if these are known."""
        if self.known is not None:
            rows = np.arange(len(self.known))
            return NearPairs(self.known, rows, np.zeros(len(rows)))
        return near_pairs(self.truth.detections, self.tracks.detections, self.gate)

    @cached_property
    def near_tracks(self) -> TrackPairs:
        """The pairs of tracks to which the near pairs of detections belong."""
        return self.track_pairs(self.near.true, self.near.found)

    def track_pairs(self, true: NDArray[np.int64], found: NDArray[np.int64]) -> TrackPairs:
        """The pairs of tracks to which the given pairs of detections, rows (P,), belong."""
        return track_pairs(self.truth.track_id[true], self.tracks.track_id[found])


def pair_up(tracks: Tracks, truth: Tracks, gate: float, link_rule: str = "particle") -> MatchedTracks:
    """Combine tracks and truth; identical detections on both sides are paired with themselves.

    Examples
    --------
    >>> a = Detections.from_table([0, 0, 1], [[0, 0, 0], [0, 9, 9], [0, 0, 1]])
    >>> b = Detections.from_table([0, 0, 1], [[0, 9, 9], [0, 0, 0], [0, 0, 1]])
    >>> pair_up(Tracks(a, np.array([[0, 2]])), Tracks(b, np.array([[1, 2]])), 5.0).true_of.tolist()
    [1, 0, 2]
    """
    same = _same_detections(tracks.detections, truth.detections)
    return MatchedTracks(tracks, truth, gate, same, link_rule)


def _same_detections(found: Detections, true: Detections) -> NDArray[np.int64] | None:
    """(N,) int64: row in `true` of every detection, or None if the two are not the same points.

    Detections at exactly the same position in one frame are paired in their order.
    """
    if not np.array_equal(found.frame, true.frame):
        return None
    if np.array_equal(found.position, true.position):
        return np.arange(len(found))
    order = [np.lexsort((*side.position.T, side.frame)) for side in (found, true)]
    if not np.array_equal(found.position[order[0]], true.position[order[1]]):
        return None
    row = np.empty(len(found), dtype=np.int64)
    row[order[0]] = order[1]
    return row


def near_pairs(true: Detections, found: Detections, gate: float) -> NearPairs:
    """Find all pairs of a true and a found detection of one frame whose distance is less than `gate`.

    Raises
    ------
    ResourceError
        If there are so many that they would fill the memory.
    """
    frames = np.intersect1d(true.frame, found.frame)
    true_in, found_in = (np.nonzero(np.isin(side.frame, frames))[0] for side in (true, found))
    true_start, found_start = (
        np.append(np.searchsorted(side.frame[rows], frames), len(rows)).astype(np.int64)
        for side, rows in ((true, true_in), (found, found_in))
    )
    pairs = pairs_within(
        true.position[true_in],
        found.position[found_in],
        gate,
        true_start,
        found_start,
        most_bytes=_MOST_PAIR_BYTES,
    )
    distance = np.sqrt(pairs.distance2)
    near = distance < gate
    row = np.repeat(pairs.rows.order, np.diff(pairs.indptr))[near]
    return NearPairs(true_in[row], found_in[pairs.cols.order[pairs.indices[near]]], distance[near])


def track_pairs(true: NDArray[np.int64], found: NDArray[np.int64]) -> TrackPairs:
    """Pairs of track numbers (P,), each once.

    Examples
    --------
    >>> pairs = track_pairs(np.array([1, 0, 1]), np.array([2, 0, 2]))
    >>> pairs.true.tolist(), pairs.found.tolist(), pairs.count.tolist(), pairs.member_of.tolist()
    ([0, 1], [0, 2], [1, 2], [1, 0, 1])
    """
    width = int(found.max(initial=0)) + 1
    code, member_of, count = np.unique(true * width + found, return_inverse=True, return_counts=True)
    return TrackPairs(code // width, code % width, count, member_of)


def heaviest_matching(
    row: NDArray[np.int64], col: NDArray[np.int64], weight: NDArray, shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """Choose pairs of largest total weight so that no row and no column is in two of them.

    Parameters
    ----------
    row, col : (P,) int64 arrays
        The pairs, none twice.
    weight : (P,) array
        Pairs of weight 0 or less are never chosen.
    shape : (int, int)
        Number of rows and columns.

    Returns
    -------
    (P,) bool array

    Examples
    --------
    >>> heaviest_matching(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([5, 4, 3]), (2, 2)).tolist()
    [False, True, True]
    """
    order = np.argsort(row, kind="stable")
    order = order[weight[order] > 0]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[order], minlength=shape[0]))]).astype(np.int64)
    costs = SparseCosts(indptr, col[order].astype(np.int32), -weight[order], shape)
    nothing = [np.zeros(length, dtype=weight.dtype) for length in shape]
    col_of_row = assign(AssignmentProblem(costs, *nothing)).col_of_row
    chosen = np.zeros(len(row), dtype=bool)
    chosen[order] = col_of_row[row[order]] == col[order]
    return chosen


def only_successors(tracks: Tracks) -> NDArray[np.int64]:
    """(N,) int64: the successor of each detection, -1 without a successor or with several.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1, 2, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 1]])
    >>> only_successors(Tracks(seen, np.array([[0, 1], [1, 2], [1, 3]]))).tolist()
    [1, -1, -1, -1]
    """
    after = np.full(len(tracks.detections), -1, dtype=np.int64)
    after[tracks.links[:, 0]] = tracks.links[:, 1]
    after[tracks.successors > 1] = -1
    return after


def ratio(part: float, whole: float) -> float:
    """`part` / `whole`, NaN for 0 / 0.

    Examples
    --------
    >>> ratio(1, 4), ratio(0, 0)
    (0.25, nan)
    """
    return float(part / whole) if whole else float("nan")
