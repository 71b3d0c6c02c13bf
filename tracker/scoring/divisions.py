"""Division scores: which divisions are found, within one frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..particles.tracks import Tracks
from .matched import MatchedTracks, only_successors, ratio

_Family = tuple[int, int, int]
"""Rows of a mother and her two daughters, the smaller one first; negative numbers for missing ones."""


def division_scores(matched: MatchedTracks) -> dict[str, float]:
    r"""Precision, recall and F1 of the divisions.

    A found division is right if its mother and both daughters stand for those of a true one. A division
    is also right within one frame, if it is a frame late (the mother's link to one daughter divides, and
    leads to what both daughters are linked to) or early (the mother's predecessor divides, one branch
    leads to her and on to a daughter and the other to her other daughter). With T true, P found and C
    right ones

    .. math:: \text{precision} = C/P, \quad \text{recall} = C/T, \quad F_1 = 2C/(T + P)

    A detection with three or more successors counts as a true or found division, but never as a right
    one.

    Parameters
    ----------
    matched : MatchedTracks

    Returns
    -------
    dict
        division_precision, division_recall, division_f1 (NaN for 0 / 0); n_true_divisions,
        n_found_divisions, n_right_divisions.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> from outbid.scoring.matched import pair_up
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    >>> truth, tracks = Tracks(seen, np.array([[0, 1], [0, 2]])), Tracks(seen, np.array([[0, 1]]))
    >>> division_scores(pair_up(truth, truth, 5.0))["division_f1"]
    1.0
    >>> division_scores(pair_up(tracks, truth, 5.0))["division_recall"]
    0.0
    """
    truth, tracks, true_of = matched.truth, matched.tracks, matched.true_of
    true, found = _families(truth), _families(tracks)
    as_true = [_family(*(_row(true_of, row) for row in family)) for family in found]
    right = {family for family in as_true if min(family) >= 0} & set(true)
    left = set(true) - right
    after_true, after_found = only_successors(truth), only_successors(tracks)
    # What a division is if it is seen a frame too late, and what a found one is if it came too early.
    late: dict[_Family, _Family] = {}
    for family in sorted(left):
        for daughter in family[1:]:
            late[_family(daughter, *(_row(after_true, row) for row in family[1:]))] = family
    before = np.full(len(truth.detections), -1, dtype=np.int64)
    before[truth.links[:, 1]] = truth.links[:, 0]
    early = {(_row(before, family[0]), *family): family for family in left}
    shifted = set()
    for family, (_, *daughters) in zip(as_true, found, strict=True):
        if family in right or family[0] < 0:
            continue
        hits = [late.get(family)] if min(family) >= 0 else []
        for one, other in (daughters, daughters[::-1]):
            branch = _family(_row(true_of, one), _row(true_of, _row(after_found, one)), _row(true_of, other))
            hits.append(early.get((family[0], *branch)))
        shifted.add(next((hit for hit in hits if hit is not None), None))
    correct = len(right) + len(shifted - {None})
    count_true, count_found = (int((side.successors >= 2).sum()) for side in (truth, tracks))
    return {
        "division_precision": ratio(correct, count_found),
        "division_recall": ratio(correct, count_true),
        "division_f1": ratio(2 * correct, count_true + count_found),
        "n_true_divisions": count_true,
        "n_found_divisions": count_found,
        "n_right_divisions": correct,
    }


def _family(mother: int, first: int, second: int) -> _Family:
    return mother, min(first, second), max(first, second)


def _row(rows: NDArray[np.int64], row: int) -> int:
    """Value of `rows` at a row; -1 for no row."""
    return int(rows[row]) if row >= 0 else -1


def _families(tracks: Tracks) -> list[_Family]:
    """List all mother cells with two daughters, in the order of the mothers' rows."""
    links = tracks.links[tracks.successors[tracks.links[:, 0]] == 2]
    return [_family(int(m), int(a), int(b)) for (m, a), (_, b) in zip(links[::2], links[1::2], strict=True)]
