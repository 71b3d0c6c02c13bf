"""Gap closing: joins track ends to track starts some frames later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import release_device_memory
from ..compute.streams import in_lanes
from ..particles.detections import Detections
from .batches import Batches, bytes_for, candidates_each, room_for_candidates
from .linking import (
    CANDIDATE_SHARE,
    NO_LIMIT,
    LinkCosts,
    Links,
    Place,
    host_share,
    if_it_fits,
    joined,
    link_rows,
    one_batch,
)


def close_gaps(
    detections: Detections,
    position: NDArray[np.float64],
    links: Links,
    max_gap: int,
    costs: LinkCosts,
    *,
    place: Place = np.asarray,
    workers: int = 1,
    memory: int = NO_LIMIT,
) -> Links:
    """Add links over 1 to `max_gap` missing frames, by one assignment between track ends and starts.

    Parameters
    ----------
    detections : Detections
    position : (N, 3) float64 array
        As in `link_frames`.
    place : callable
        As in `link_frames`. If the problem does not fit the GPU, it is solved on the host as a whole.
    links : Links
        Frame-to-frame links. Ends are detections without a successor, starts those without a
        predecessor.
    max_gap : int
        Most frames in which a particle may be missed: 1 allows links from frame t to t + 2.
    costs : LinkCosts
        With the gate and unmatched cost of gaps, the same for every length of gap.
    workers, memory
        As in `link_frames`.

    Returns
    -------
    Links
        The given and the new ones, sorted by source.

    Examples
    --------
    >>> from outbid.gated.linking import link_frames
    >>> seen = Detections.from_table([0, 1, 3], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> costs = LinkCosts(max_distance=3.0)
    >>> close_gaps(seen, seen.position, link_frames(seen, seen.position, costs), 1, costs).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    if max_gap < 1 or len(detections) == 0:
        return links
    ends, starts = (_without(detections, links.pairs[:, side]) for side in (0, 1))
    if costs.pins is not None:
        ends, starts = ends[~costs.pins.row_closed[ends]], starts[~costs.pins.column_closed[starts]]
    ends = ends[detections.frame[ends] < detections.frame[-1]]
    starts = starts[detections.frame[starts] > detections.frame[0]]
    movie, lags = (detections, position, costs), (2, max_gap + 1)

    def work(place: Place, most_bytes: int) -> Links:
        return link_rows(movie, (ends, starts), lags, place, workers, most_bytes)

    if place is np.asarray:
        return joined([links, work(place, int(CANDIDATE_SHARE * memory))])
    # One problem, for a start that one frame's end takes is lost to those of others: it cannot be halved.
    size = (len(ends) + len(starts)) // 2
    each = candidates_each(position, detections.frame_start, costs.max_distance)
    pairs = each * max_gap * len(ends) * len(starts) / len(detections)
    batches = Batches(planned_bytes=bytes_for(size, pairs))
    release_device_memory()
    [found] = in_lanes(lambda room: if_it_fits(work, place, room), [room_for_candidates(size, memory)], 1)
    if found is not None:
        return joined([links, found], batches + one_batch(found))
    release_device_memory()
    return joined([links, work(np.asarray, host_share())], batches + Batches(on_host=1))


def _without(detections: Detections, linked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the detections that are not in `linked`."""
    free = np.ones(len(detections), dtype=bool)
    free[linked] = False
    return np.nonzero(free)[0]
