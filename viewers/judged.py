"""Judge single links as right or wrong; the link scores are sums over these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outbid.particles.tracks import Tracks
from outbid.scoring.gate import gate_for
from outbid.scoring.links import right_links
from outbid.scoring.matched import pair_up


@dataclass(frozen=True, eq=False)
class JudgedLinks:
    """Found links, each marked as right or wrong, and true links, each marked as found or missed.

    Scores of links ignore divisions: a true link counts if its source does not divide, and a found link
    counts if it is not a true link of a dividing detection. `link_scores` are sums over the links that
    count.

    Parameters
    ----------
    tracks, truth : Tracks
        E found and T true links.
    right : (E,) bool array
        Whether the link is right.
    found_counts : (E,) bool array
        Whether the found link counts in the scores.
    found_again : (T,) bool array
        Whether the true link was found; of those under a link over missed frames, the first was.
    true_counts : (T,) bool array
        Whether the true link counts in the scores.
    """

    tracks: Tracks
    truth: Tracks
    right: NDArray[np.bool_]
    found_counts: NDArray[np.bool_]
    found_again: NDArray[np.bool_]
    true_counts: NDArray[np.bool_]


def judge_links(
    tracks: Tracks, truth: Tracks, gate: float | None = None, link_rule: str = "particle"
) -> JudgedLinks:
    """Judge links as `outbid.scoring.score` does.

    Parameters
    ----------
    tracks, truth : Tracks
        What was found and what is true, in the same unit and with the same frame numbers.
    gate : float, optional
        Largest distance at which detections are paired, in the unit of the positions. Default: as
        `outbid.scoring.gate.gate_for` has it.
    link_rule : {"particle", "edge"}
        As for `outbid.scoring.score`.

    Raises
    ------
    SettingsError
        If the gate is not positive and finite, or there is no such rule.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> found, truth = Tracks(seen, np.array([[0, 1], [0, 2]])), Tracks(seen, np.array([[0, 1], [1, 2]]))
    >>> judged = judge_links(found, truth)
    >>> judged.right.tolist(), judged.found_again.tolist()
    ([True, False], [True, False])
    """
    judged = right_links(pair_up(tracks, truth, gate_for(gate, truth).distance, link_rule))
    return JudgedLinks(
        tracks, truth, judged.right, judged.found_counts, judged.found_again, judged.true_counts
    )
