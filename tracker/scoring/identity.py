"""Identity scores: whether each track stays on the same particle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .matched import MatchedTracks, NearPairs, TrackPairs, heaviest_matching, ratio

_THRESHOLDS = np.arange(1, 20) / 20
"""HOTA's similarity thresholds, 0.05 to 0.95."""

_ROUNDING = 1e-12
"""Tolerance for similarities that only rounding puts below a threshold."""


def identity_scores(matched: MatchedTracks) -> dict[str, float]:
    """All scores of track identity: `id_f1`, `clear_mot`, `hota` and `track_overlap`.

    A track ends where it divides, and the daughters are tracks of their own; a detection without links is
    a track of one frame. If found and true tracks have the same detections, each detection is paired with
    itself, however near others are.

    Parameters
    ----------
    matched : MatchedTracks

    Returns
    -------
    dict
        Names and values; NaN for 0 / 0.

    Examples
    --------
    Two particles change places in the last of three frames:

    >>> from outbid.particles.detections import Detections
    >>> from outbid.particles.tracks import Tracks
    >>> from outbid.scoring.matched import pair_up
    >>> seen = Detections.from_table([0, 0, 1, 1, 2, 2], [[0, y, 0] for y in (0, 20) * 3])
    >>> truth = Tracks.from_track_ids(seen, [0, 1, 0, 1, 0, 1])
    >>> swapped = Tracks.from_track_ids(seen, [0, 1, 0, 1, 1, 0])
    >>> {name: round(value, 2) for name, value in identity_scores(pair_up(swapped, truth, 5.0)).items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'idf1': 0.67, 'mota': 0.67, 'id_switches': 2, 'hota': 0.63, 'det_a': 1.0, 'ass_a': 0.4,
     'complete_tracks': 0.0, 'track_purity': 0.67, 'target_effectiveness': 0.67}
    """
    return id_f1(matched) | clear_mot(matched) | hota(matched) | track_overlap(matched)


def id_f1(matched: MatchedTracks) -> dict[str, float]:
    r"""IDF1, the share of detections with the right identity when each true track has one found track.

    True and found tracks are paired one to one so that the frames in which the two are nearer than the
    gate, IDTP, are most:

    .. math:: \text{IDF1} = 2\,\text{IDTP} / (\text{true} + \text{found detections})

    References
    ----------
    Ristani et al., Performance measures and a data set for multi-target, multi-camera tracking (2016).
    """
    pairs = matched.near_tracks
    chosen = heaviest_matching(pairs.true, pairs.found, pairs.count, _track_counts(matched))
    hits = int(pairs.count[chosen].sum())
    return {"idf1": ratio(2 * hits, len(matched.truth.detections) + len(matched.tracks.detections))}


def clear_mot(matched: MatchedTracks) -> dict[str, float]:
    r"""MOTA and the number of identity switches.

    Frame by frame, a pair of tracks that was matched in the frame before (the last in which anything was
    there on both sides) stays matched while the two are nearer than the gate; the rest is matched for the
    largest sum of ``1 - distance / gate``. An identity switch is counted when a true track is matched to
    another found track than at its last match, however long ago.

    .. math:: \text{MOTA} = 1 - (\text{FN} + \text{FP} + \text{switches}) / \text{true detections}

    References
    ----------
    Bernardin & Stiefelhagen, Evaluating multiple object tracking performance: the CLEAR MOT metrics (2008).
    """
    near = matched.near
    chosen = _continued_matching(matched, near)
    true_id = matched.truth.track_id[near.true[chosen]]
    found_id = matched.tracks.track_id[near.found[chosen]]
    order = np.argsort(true_id, kind="stable")  # the pairs come by frame
    true_id, found_id = true_id[order], found_id[order]
    switches = int(((true_id[1:] == true_id[:-1]) & (found_id[1:] != found_id[:-1])).sum())
    true, found, hits = len(matched.truth.detections), len(matched.tracks.detections), len(order)
    errors = (true - hits) + (found - hits) + switches
    return {"mota": 1 - ratio(errors, true), "id_switches": switches}


def _continued_matching(matched: MatchedTracks, near: NearPairs) -> NDArray[np.bool_]:
    """(P,) bool: the near pairs that CLEAR MOT matches.

    A pair of a true and a found detection is contested if one of the two is also in another pair. Frames
    without contested pairs need no decision; frames with contested pairs are matched in the order of
    time.
    """
    true_id, found_id = matched.truth.track_id[near.true], matched.tracks.track_id[near.found]
    contested = (np.bincount(near.true)[near.true] > 1) | (np.bincount(near.found)[near.found] > 1)
    chosen = ~contested
    both = np.intersect1d(matched.truth.detections.frame, matched.tracks.detections.frame)
    number = np.searchsorted(both, matched.truth.detections.frame[near.true])
    start = np.searchsorted(number, np.arange(len(both) + 1))
    partner = np.full(matched.truth.track_count, -1, dtype=np.int64)
    for k in np.unique(number[contested]):
        # Empty for the first frame: start[-1] is the end.
        before = start[k - 1] + np.nonzero(chosen[start[k - 1] : start[k]])[0]
        here = start[k] + np.nonzero(contested[start[k] : start[k + 1]])[0]
        partner[true_id[before]] = found_id[before]
        kept = partner[true_id[here]] == found_id[here]
        partner[true_id[before]] = -1
        # Without a kept pair at most two others can be had, each of them worth less than 1.
        weight = 1 - near.distance[here] / matched.gate + 2.0 * kept
        rows, row = np.unique(near.true[here], return_inverse=True)
        cols, col = np.unique(near.found[here], return_inverse=True)
        chosen[here] = heaviest_matching(row, col, weight, (len(rows), len(cols)))
    return chosen


def hota(matched: MatchedTracks) -> dict[str, float]:
    r"""HOTA, detection and association in equal parts, and these parts, DetA and AssA.

    The similarity of two detections is ``1 - distance / gate``. Each frame is matched once, for the largest
    sum of similarity times the alignment of the two tracks over the whole movie; at each threshold
    .05, .10, … .95 the matched pairs at least so similar are the TP. With n the TP that two tracks have
    in common, each TP counts n / (the lengths of both tracks - n) in AssA,

    .. math:: \text{DetA} = \text{TP} / (\text{TP} + \text{FN} + \text{FP}), \quad
        \text{HOTA} = \sqrt{\text{DetA} \cdot \text{AssA}}

    and all three are means over the thresholds. TrackEval, the program of HOTA's authors, uses the same
    single matching; their paper describes one matching for each threshold.

    References
    ----------
    Luiten et al., HOTA: a higher order metric for evaluating multi-object tracking, IJCV 129 (2021).
    """
    near, pairs = matched.near, matched.near_tracks
    true, found = len(matched.truth.detections), len(matched.tracks.detections)
    similarity = 1 - near.distance / matched.gate
    lengths = _lengths(matched, pairs)
    chosen = _aligned_matching(near, pairs, similarity, lengths, (true, found))
    detection, association = np.empty(len(_THRESHOLDS)), np.empty(len(_THRESHOLDS))
    for k, threshold in enumerate(_THRESHOLDS):
        hit = chosen & (similarity >= threshold - _ROUNDING)
        common = np.bincount(pairs.member_of[hit], minlength=len(pairs.true))
        hits = int(common.sum())
        detection[k] = ratio(hits, true + found - hits)
        association[k] = float((common * (common / (lengths - common))).sum()) / max(hits, 1)
    return {
        "hota": float(np.sqrt(detection * association).mean()),
        "det_a": float(detection.mean()),
        "ass_a": float(association.mean()) if true + found else float("nan"),
    }


def _aligned_matching(
    near: NearPairs, pairs: TrackPairs, similarity: NDArray, lengths: NDArray, shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """(P,) bool: the near pairs that HOTA matches, guided by how well their tracks agree."""
    row_sum = np.bincount(near.true, weights=similarity)[near.true]
    col_sum = np.bincount(near.found, weights=similarity)[near.found]
    common = pairs.sum(similarity / (row_sum + col_sum - similarity))
    alignment = common / (lengths - common)
    return heaviest_matching(near.true, near.found, alignment[pairs.member_of] * similarity, shape)


def track_overlap(matched: MatchedTracks) -> dict[str, float]:
    r"""Complete tracks, track purity and target effectiveness.

    Detections are paired frame by frame. A true track is complete if one found track has all its
    detections and no other; complete_tracks is their share of the true tracks. With o(r, c) the
    detections that true track r and found track c have in common

    .. math:: \text{purity} = \sum_c \max_r o(r, c) / \text{found detections}, \quad
        \text{effectiveness} = \sum_r \max_c o(r, c) / \text{true detections}

    References
    ----------
    Bise et al., Reliable cell tracking by global data association (2011).
    """
    found = np.nonzero(matched.true_of >= 0)[0]
    pairs = matched.track_pairs(matched.true_of[found], found)
    true_tracks, found_tracks = _track_counts(matched)
    most_of_true, most_of_found = np.zeros(true_tracks, np.int64), np.zeros(found_tracks, np.int64)
    np.maximum.at(most_of_true, pairs.true, pairs.count)
    np.maximum.at(most_of_found, pairs.found, pairs.count)
    # All of both: no longer than the two tracks together would be if they shared every frame.
    complete = int((2 * pairs.count == _lengths(matched, pairs)).sum())
    return {
        "complete_tracks": ratio(complete, true_tracks),
        "track_purity": ratio(int(most_of_found.sum()), len(matched.tracks.detections)),
        "target_effectiveness": ratio(int(most_of_true.sum()), len(matched.truth.detections)),
    }


def _track_counts(matched: MatchedTracks) -> tuple[int, int]:
    """Number of true tracks and number of found tracks."""
    return matched.truth.track_count, matched.tracks.track_count


def _lengths(matched: MatchedTracks, pairs: TrackPairs) -> NDArray[np.int64]:
    """(U,) int64: detections of both tracks of each pair."""
    true, found = np.bincount(matched.truth.track_id), np.bincount(matched.tracks.track_id)
    return true[pairs.true] + found[pairs.found]
