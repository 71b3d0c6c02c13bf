"""Scores of the ISBI 2012 particle tracking challenge: alpha, beta, JSC, JSC_theta and RMSE."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..particles.detections import Detections
from ..particles.tracks import Tracks
from .matched import MatchedTracks, TrackPairs, heaviest_matching, near_pairs, ratio, track_pairs


def particle_scores(matched: MatchedTracks) -> dict[str, float]:
    r"""The scores of the ISBI 2012 particle tracking challenge, as its organisers' program counts them.

    Let :math:`\varepsilon` be the gate, and a track as long as from its first to its last frame. If a
    true track skips frames, linearly interpolated positions stand in for the missing detections. A found
    track c is as far from a true track r as

    .. math:: d(r, c) = \varepsilon (|\Delta\text{start}| + |\Delta\text{end}|)
        + \sum_t \begin{cases} \text{distance} & \text{c has a detection nearer than } \varepsilon \\
        \varepsilon & \text{otherwise} \end{cases}

    summed over the frames in which both tracks exist; in at least one of them, their detections must be
    nearer than the gate. For these scores, each true track is paired with one found track or with none,
    which costs :math:`\varepsilon` a frame, so that the total D is least. With B the cost of pairing none
    and P :math:`\varepsilon` times the length of the found tracks that are left over:

    - alpha = 1 - D/B and beta = (B - D)/(B + P)
    - JSC = TP/(TP + FN + FP) over detections: TP near each other in paired tracks; FN true frames
      that are not, interpolated ones included; FP found detections that are not, and all the frames
      of a paired track outside the life of its true track
    - JSC_theta = pairs/(true tracks + found tracks left over)
    - RMSE over the TP, in the unit of the positions

    A detection without links is a track of one frame; a track ends where it divides. These scores pair
    tracks by distance alone, even if found and true tracks have the same detections.

    A frame in which both the true and the found track are only interpolated therefore costs as much as a
    miss, and tracks that skip frames score below 1 even against themselves. The program of the
    challenge's organisers has the same rule: its ``TrackToTrackDistance`` takes a candidate for matched
    only if it is no virtual detection, and counts every other frame of the reference's life as not
    matched, whether the reference was seen there or not. The true tracks of the ISBI challenge skip no
    frames.

    Parameters
    ----------
    matched : MatchedTracks

    Returns
    -------
    dict
        alpha, beta, jsc, jsc_theta, rmse; NaN for 0 / 0.

    References
    ----------
    Chenouard et al., Objective comparison of particle tracking methods, Nature Methods 11 (2014). The program
    is the Icy plugin of N. Chenouard; its classes stand, ported, in trackmate-sc/TrackMate-CTCRunner
    (``performance/spt/measure``).

    Examples
    --------
    >>> from outbid.scoring.matched import pair_up
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]])
    >>> truth, nothing = Tracks(seen, np.array([[0, 1]])), Tracks(seen, np.empty((0, 2), np.int64))
    >>> found = particle_scores(pair_up(nothing, truth, 5.0))
    >>> found["alpha"], round(found["beta"], 3), found["jsc_theta"]
    (0.5, 0.333, 0.5)
    """
    gate, truth, tracks = matched.gate, matched.truth, matched.tracks
    true, found = _lengths(truth), _lengths(tracks)
    pairs, distance, squares = _near_tracks(truth, tracks, gate)
    spans = truth.span[:, pairs.true], tracks.span[:, pairs.found]
    union = np.maximum(*spans)[1] + 1 - np.minimum(*spans)[0]
    # How much a pair saves against pairing none, gate * frames - distance, with whole frames apart so
    # that a track scored against itself gives 1 to the last bit.
    frames = true[pairs.true] - union + pairs.count
    chosen = heaviest_matching(pairs.true, pairs.found, gate * frames - distance, (len(true), len(found)))
    saved = gate * int(frames[chosen].sum()) - float(distance[chosen].sum())
    left_over = np.ones(len(found), dtype=bool)
    left_over[pairs.found[chosen]] = False
    bound = gate * int(true.sum())
    hits = int(pairs.count[chosen].sum())
    missed = int(true.sum()) - hits
    wrong = _chargeable(tracks, truth, pairs.found[chosen], pairs.true[chosen]) - hits
    return {
        "alpha": ratio(saved, bound),
        "beta": ratio(saved, bound + gate * int(found[left_over].sum())),
        "jsc": ratio(hits, hits + missed + wrong),
        "jsc_theta": ratio(int(chosen.sum()), len(true) + int(left_over.sum())),
        "rmse": float(np.sqrt(ratio(float(squares[chosen].sum()), hits))),
    }


def skipped_frames(tracks: Tracks) -> int:
    """Frames inside the life of a track in which it has no detection, of all tracks together.

    Examples
    --------
    >>> seen = Detections.from_table([0, 3], [[0, 0, 0], [0, 0, 3]])
    >>> skipped_frames(Tracks(seen, np.array([[0, 1]])))
    2
    """
    return int(_lengths(tracks).sum()) - len(tracks.detections)


def _lengths(tracks: Tracks) -> NDArray[np.int64]:
    """(track_count,) int64: frames from the first to the last of each track."""
    return np.diff(tracks.span, axis=0)[0] + 1


def _near_tracks(truth: Tracks, tracks: Tracks, gate: float) -> tuple[TrackPairs, NDArray, NDArray]:
    """Pairs of tracks that come nearer than the gate, their summed distances (U,) and squares (U,)."""
    points, owner = _without_gaps(truth, np.unique(tracks.detections.frame))
    near = near_pairs(points, tracks.detections, gate)
    pairs = track_pairs(owner[near.true], tracks.track_id[near.found])
    return pairs, pairs.sum(near.distance), pairs.sum(near.distance**2)


def _without_gaps(tracks: Tracks, frames: NDArray[np.int32]) -> tuple[Detections, NDArray[np.int64]]:
    """The detections and, on a line between the two that end a gap, virtual ones in the given `frames`.

    Returns real and virtual detections sorted by frame, and the track of each.
    """
    seen, track_id = tracks.detections, tracks.track_id
    frame = seen.frame.astype(np.int64)
    order = np.lexsort((frame, track_id))
    before, after = order[:-1], order[1:]
    gap = (track_id[before] == track_id[after]) & (frame[after] - frame[before] > 1)
    before, after = before[gap], after[gap]
    start = np.searchsorted(frames, frame[before], side="right")
    count = np.searchsorted(frames, frame[after], side="left") - start
    which = np.repeat(np.arange(len(before)), count)
    within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    virtual_frame = frames[start[which] + within]
    before, after = before[which], after[which]
    share = (virtual_frame - frame[before]) / (frame[after] - frame[before])
    step = seen.position[after] - seen.position[before]
    all_frames = np.concatenate([seen.frame, virtual_frame])
    position = np.concatenate([seen.position, seen.position[before] + share[:, np.newaxis] * step])
    order = np.argsort(all_frames, kind="stable")
    owner = np.concatenate([track_id, track_id[before]])
    return Detections(all_frames[order], position[order]), owner[order]


def _chargeable(tracks: Tracks, truth: Tracks, found: NDArray[np.int64], true: NDArray[np.int64]) -> int:
    """Frames that are false positives unless they are hits, for pairs of tracks given as two (K,) arrays.

    Inside the life of the true track, and in tracks left over, only what was seen counts; outside it
    every frame does: so the organisers' program has it.
    """
    limits = np.repeat([[np.iinfo(np.int64).min], [np.iinfo(np.int64).max]], tracks.track_count, axis=1)
    limits[:, found] = truth.span[:, true]
    (begin, end), frame = limits[:, tracks.track_id], tracks.detections.frame
    early, late = (truth.span[:, true] - tracks.span[:, found]) * [[1], [-1]]
    outside = np.maximum(early, 0) + np.maximum(late, 0)
    return int(((frame >= begin) & (frame <= end)).sum() + outside.sum())
