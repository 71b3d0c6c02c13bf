"""Gap closing: joins tracks that end to tracks that start some frames later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .detections import Detections
from .link import LinkCosts, Links, joined, link


def close_gaps(
    detections: Detections,
    position: NDArray[np.float64],
    links: Links,
    max_gap: int,
    costs: LinkCosts,
    *,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Links:
    """Add links over 1 to `max_gap` missing frames, by one assignment between track ends and starts.

    Parameters
    ----------
    detections : Detections
    position : (N, 3) float64 array
        As in `link_frames`.
    links : Links
        Frame-to-frame links. Ends are detections without a successor, starts those without a
        predecessor.
    max_gap : int
        Frames in which a particle may be missing: 1 allows links from frame t to t + 2.
    costs : LinkCosts
        With the gate and unmatched cost of gaps, the same for every length of gap.

    Returns
    -------
    Links
        The given and the new ones, sorted by source.

    Examples
    --------
    >>> from outbid.tracker.link import link_frames
    >>> seen = Detections.from_table([0, 1, 3], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> costs = LinkCosts(max_distance=3.0)
    >>> close_gaps(seen, seen.position, link_frames(seen, seen.position, costs), 1, costs).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    if max_gap < 1 or len(detections) == 0:
        return links
    ends = np.setdiff1d(np.arange(len(detections)), links.pairs[:, 0], assume_unique=True)
    starts = np.setdiff1d(np.arange(len(detections)), links.pairs[:, 1], assume_unique=True)
    ends = ends[detections.frame[ends] < detections.frame[-1]]
    starts = starts[detections.frame[starts] > detections.frame[0]]
    over_gaps = link(
        *(detections, position, ends, starts, (2, max_gap + 1), costs), workers=workers, most_bytes=most_bytes
    )
    return joined([links, over_gaps])
