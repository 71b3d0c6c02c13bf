"""Link scores: which links are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from .matched import MatchedTracks, only_successors, ratio

LINK_RULES = ("particle", "edge")
"""Which links are right: also those over frames in which the tracks lack the particle, or only true ones."""


@dataclass(frozen=True, eq=False)
class RightLinks:
    """Found links, each as right or wrong; E of the tracks and T of the truth.

    Parameters
    ----------
    right : (E,) bool array
        Whether the link is right.
    over_missed : (E,) bool array
        Whether it is right and over frames in which the tracks lack its particle.
    found_counts : (E,) bool array
        Whether the found link counts in the scores: all but the true links of divisions.
    found_again : (T,) bool array
        Whether a right link leaves the source of the true link: of the true links under a link over missed
        frames, the first is found again.
    true_counts : (T,) bool array
        Whether the true link counts in the scores: its source does not divide.
    """

    right: NDArray[np.bool_]
    over_missed: NDArray[np.bool_]
    found_counts: NDArray[np.bool_]
    found_again: NDArray[np.bool_]
    true_counts: NDArray[np.bool_]


def right_links(matched: MatchedTracks) -> RightLinks:
    """Judge each link by the rule of the matching.

    By the rule `edge`, a link is right if the truth has the link between the detections that its own stand
    for: so do the challenges count. By the rule `particle`, a link is also right if it joins two detections
    of one particle and the tracks have no detection of that particle between them.

    Raises
    ------
    SettingsError
        If there is no such rule.
    """
    if not isinstance(matched.link_rule, str) or matched.link_rule not in LINK_RULES:
        raise SettingsError(f"There is no rule {matched.link_rule!r}. Choose from: {', '.join(LINK_RULES)}.")
    truth = matched.truth
    count = max(len(truth.detections), 1)
    true_code = truth.links[:, 0] * count + truth.links[:, 1]
    divides = truth.successors[truth.links[:, 0]] >= 2
    source, target = matched.true_of[matched.tracks.links].T
    known = (source >= 0) & (target >= 0)
    code = np.where(known, source * count + target, -1)
    right, again = np.isin(code, true_code), np.isin(true_code, code)
    over = np.zeros(len(code), dtype=bool)
    if matched.link_rule == "particle":
        over[known] = _next_seen(matched)[source[known]] == target[known]
        over &= ~right
        again |= ~divides & np.isin(truth.links[:, 0], source[over])
    return RightLinks(right | over, over, ~np.isin(code, true_code[divides]), again, ~divides)


def _next_seen(matched: MatchedTracks) -> NDArray[np.int64]:
    """(M,) int64: the next detection of each true one's particle that the tracks have; -1 for none."""
    after = only_successors(matched.truth)
    seen = np.zeros(len(after), dtype=bool)
    seen[matched.true_of[matched.true_of >= 0]] = True
    found = after.copy()
    missed = np.nonzero(seen & (found >= 0))[0]
    while len(missed := missed[~seen[found[missed]]]):
        found[missed] = after[found[missed]]
        missed = missed[found[missed] >= 0]
    return found


def link_scores(matched: MatchedTracks) -> dict[str, float]:
    r"""Precision, recall, F1 and Jaccard index of the links.

    A link is correct if it joins two detections of one particle between which the tracks have no detection of
    it: a link that closes a gap is one link, and right if the particle was missed in all frames between. With
    T true, P predicted and C correct links

    .. math:: \text{precision} = C/P, \quad \text{recall} = C/T,
        \quad F_1 = 2C/(T + P), \quad J = C/(T + P - C)

    A detection that was missed between two others costs one link of the recall, for two true links become
    one. By the rule ``edge`` a link over a missed detection is false: right are those that the truth has.

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
        n_predicted_links, n_correct_links, and how many of these are over missed frames.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> from outbid.particles.tracks import Tracks
    >>> from outbid.scoring.matched import pair_up
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> truth, tracks = Tracks(seen, np.array([[0, 1], [1, 2]])), Tracks(seen, np.array([[0, 1]]))
    >>> link_scores(pair_up(tracks, truth, 5.0))["link_recall"]
    0.5
    """
    judged = right_links(matched)
    true, predicted = int(judged.true_counts.sum()), int(judged.found_counts.sum())
    correct = int((judged.right & judged.found_counts).sum())
    return {
        "link_precision": ratio(correct, predicted),
        "link_recall": ratio(correct, true),
        "link_f1": ratio(2 * correct, true + predicted),
        "link_jaccard": ratio(correct, true + predicted - correct),
        "n_true_links": true,
        "n_predicted_links": predicted,
        "n_correct_links": correct,
        "n_correct_links_over_missed_frames": int(judged.over_missed.sum()),
    }
