"""Merge scores: which merges are found, within one frame."""

from __future__ import annotations

import numpy as np

from ..particles.detections import Detections
from ..particles.tracks import Tracks
from .divisions import division_scores
from .matched import MatchedTracks


def merge_scores(matched: MatchedTracks) -> dict[str, float]:
    """Precision, recall and F1 of the merges: those of the divisions in the movie run backward.

    Parameters
    ----------
    matched : MatchedTracks

    Returns
    -------
    dict
        merge_precision, merge_recall, merge_f1 (NaN for 0 / 0); n_true_merges, n_found_merges,
        n_right_merges.

    Examples
    --------
    >>> from outbid.scoring.matched import pair_up
    >>> seen = Detections.from_table([0, 0, 1], [[0, 0, 0], [0, 0, 2], [0, 0, 1]])
    >>> truth, tracks = Tracks(seen, np.array([[0, 2], [1, 2]])), Tracks(seen, np.array([[0, 2]]))
    >>> merge_scores(pair_up(truth, truth, 5.0))["merge_f1"]
    1.0
    >>> merge_scores(pair_up(tracks, truth, 5.0))["merge_recall"]
    0.0
    """
    true_of = matched.true_of[::-1]
    known = np.where(true_of >= 0, len(matched.truth.detections) - 1 - true_of, -1)
    back = MatchedTracks(_backward(matched.tracks), _backward(matched.truth), matched.gate, known)
    return {name.replace("division", "merge"): value for name, value in division_scores(back).items()}


def _backward(tracks: Tracks) -> Tracks:
    """Tracks of the time-reversed movie: row i becomes row N - 1 - i."""
    seen, links = tracks.detections, len(tracks.detections) - 1 - tracks.links[:, ::-1]
    # ~frame is -1 - frame, and never too large.
    return Tracks(Detections(~seen.frame[::-1], seen.position[::-1]), links[np.lexsort(links.T[::-1])])
