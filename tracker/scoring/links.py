"""Link scores: which links are right."""

from __future__ import annotations

import numpy as np

from .matched import MatchedTracks, ratio


def link_scores(matched: MatchedTracks) -> dict[str, float]:
    r"""Precision, recall, F1 and Jaccard index of the links.

    A link is correct if the two detections that it joins stand for two that a true link joins; a
    link over a gap is one link between its two detections, and right only if the truth has the same.
    With T true, P predicted and C correct links

    .. math:: \text{precision} = C/P, \quad \text{recall} = C/T,
        \quad F_1 = 2C/(T + P), \quad J = C/(T + P - C)

    Divisions are not counted: the true links that leave a detection with two or more successors are not
    among T, and a predicted link equal to one of them is not among P. A predicted link from a detection
    that truly divides to any detection that is not its daughter is false.

    Parameters
    ----------
    matched : MatchedTracks

    Returns
    -------
    dict
        link_precision, link_recall, link_f1, link_jaccard (NaN for 0 / 0); n_true_links,
        n_predicted_links, n_correct_links.

    Examples
    --------
    >>> import numpy as np
    >>> from outbid.particles.detections import Detections
    >>> from outbid.particles.tracks import Tracks
    >>> from outbid.scoring.matched import pair_up
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> truth, tracks = Tracks(seen, np.array([[0, 1], [1, 2]])), Tracks(seen, np.array([[0, 1]]))
    >>> link_scores(pair_up(tracks, truth, 5.0))["link_recall"]
    0.5
    """
    truth = matched.truth
    count = max(len(truth.detections), 1)
    true_code = truth.links[:, 0] * count + truth.links[:, 1]
    divides = truth.successors[truth.links[:, 0]] >= 2
    source, target = matched.true_of[matched.tracks.links].T
    code = (source * count + target)[(source >= 0) & (target >= 0)]
    true = len(true_code) - int(divides.sum())
    predicted = len(source) - int(np.isin(code, true_code[divides]).sum())
    correct = int(np.isin(code, true_code[~divides]).sum())
    return {
        "link_precision": ratio(correct, predicted),
        "link_recall": ratio(correct, true),
        "link_f1": ratio(2 * correct, true + predicted),
        "link_jaccard": ratio(correct, true + predicted - correct),
        "n_true_links": true,
        "n_predicted_links": predicted,
        "n_correct_links": correct,
    }
