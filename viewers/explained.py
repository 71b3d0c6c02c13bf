"""Explain in a sentence why a link of low probability was chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.tracks import Tracks

_REACH = 1.5
"""Search radius for rivals around the ends of a link, as a multiple of its length."""
_LONG = 3.0
"""Multiple of the median link length from which on a link counts as long."""


def why(tracks: Tracks, link: int, spacing: tuple[float, float, float] = (1, 1, 1)) -> str:
    """Explain what makes a link doubtful: rivals near its ends, or its length.

    Parameters
    ----------
    tracks : Tracks
    link : int
        Row of `Tracks.links`.
    spacing : (float, float, float)
        By which positions are multiplied.

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 0, -1]])
    >>> why(Tracks(seen, np.array([[0, 1]])), 0)
    '1 other detection at its end is about as near.'
    """
    seen = tracks.detections
    place = seen.position * np.asarray(spacing, dtype=np.float64)
    source, target = tracks.links[link].tolist()
    reach = _REACH * float(np.linalg.norm(place[target] - place[source]))
    at_end = _near(place, seen.rows_of(int(seen.frame[target])), source, reach) - 1
    at_start = _near(place, seen.rows_of(int(seen.frame[source])), target, reach) - 1
    rivals = [
        f"{count} other detection{'s' * (count > 1)} at its {side}"
        for count, side in ((at_end, "end"), (at_start, "start"))
        if count > 0
    ]
    if rivals:
        many = at_end > 1 or len(rivals) > 1 or (at_end <= 0 and at_start > 1)
        return f"{' and '.join(rivals)} {'are' if many else 'is'} about as near."
    length = np.linalg.norm(place[tracks.links[:, 1]] - place[tracks.links[:, 0]], axis=1)
    if reach / _REACH > _LONG * float(np.median(length)):
        return "It is much longer than usual: the particle may have ended, and another begun."
    gap = int(seen.frame[target] - seen.frame[source])
    return f"It spans {gap} frames." if gap > 1 else "No rival is near; the model expects a different step."


def _near(place: NDArray[np.float64], rows: slice, of: int, reach: float) -> int:
    return int((np.linalg.norm(place[rows] - place[of], axis=1) <= reach * (1 + 1e-9)).sum())
