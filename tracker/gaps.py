"""Gap closing: joins tracks that end to tracks that start some frames later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ._arrays import release_device_memory
from .detections import Detections
from .errors import ResourceError
from .link import LinkCosts, Links, Place, joined, link


def close_gaps(
    detections: Detections,
    position: NDArray[np.float64],
    links: Links,
    max_gap: int,
    costs: LinkCosts,
    *,
    place: Place = np.asarray,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Links:
    """Add links over 1 to `max_gap` missing frames, by one assignment between track ends and starts.

    Parameters
    ----------
    detections : Detections
    position : (N, 3) float64 array
        As in `link_frames`.
    place : callable
        As in `link_frames`; what does not fit there is done on the host as a whole.
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
    try:
        found = _joining(detections, position, (ends, starts), max_gap, costs, place, workers, most_bytes)
        return joined([links, found])
    except (MemoryError, ResourceError):
        if place is np.asarray:
            raise
    release_device_memory()
    found = _joining(detections, position, (ends, starts), max_gap, costs, np.asarray, workers, None)
    return joined([links, found], fallbacks=1)


def _joining(
    detections: Detections,
    position: NDArray[np.float64],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    max_gap: int,
    costs: LinkCosts,
    place: Place,
    workers: int,
    most_bytes: int | None,
) -> Links:
    """Links from ends to starts, given by their rows."""
    ends, starts = rows
    found = link(
        *((place(position[ends]), place(position[starts])), (2, max_gap + 1), costs),
        blocks=(detections.frame[ends], detections.frame[starts]),
        workers=workers,
        most_bytes=most_bytes,
    )
    pairs = np.column_stack([ends[found.pairs[:, 0]], starts[found.pairs[:, 1]]])
    return replace(found, pairs=pairs)
