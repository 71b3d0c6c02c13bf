"""Motion that all tracks share: drift of the stage or the sample, which adds to diffusion and exponent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..particles.tracks import Tracks

_FEWEST = 5
"""Guard: tracks below which nothing is said of their common motion."""
_ERRORS = 5.0
"""Error level: standard errors by which the common step must differ from 0."""
_SHARE = 0.05
"""Guard: share of the mean square step below which a common step hardly changes any measure."""


def on_common_motion(tracks: Tracks) -> list[str]:
    """A sentence if all tracks move together, so that drift is likely.

    Examples
    --------
    >>> from outbid import Detections
    >>> frame, number = np.divmod(np.arange(60), 6)
    >>> place = np.column_stack([0 * frame, 9.0 * number, frame + number % 2 / 8])
    >>> on_common_motion(Tracks.from_track_ids(Detections.from_table(frame, place), number))[0][:62]
    'All tracks move together, by 1 pixel a frame on average: drift'
    """
    step, of = _steps(tracks)
    count = np.bincount(of, minlength=tracks.track_count)
    some = count > 0
    if some.sum() < _FEWEST:
        return []
    sums = [np.bincount(of, step[:, axis], tracks.track_count) for axis in range(3)]
    mean = np.column_stack(sums)[some] / count[some, None]
    common, square = mean.mean(axis=0), float(np.square(step).sum(axis=1).mean())
    error = float(np.sqrt(np.square(mean - common).sum() / len(mean) / (len(mean) - 1)))
    size = float(np.linalg.norm(common))
    if size <= _ERRORS * error or size**2 < _SHARE * square:
        return []
    return [
        f"All tracks move together, by {size:.3g} {tracks.detections.unit} a frame on average: drift, or "
        'a flow. It adds to diffusion and exponent. To subtract it: --drift tracks (Python: drift="tracks").'
    ]


def without_common_motion(tracks: Tracks) -> tuple[Tracks, float]:
    """Subtract the mean step of all tracks from frame to frame; also the largest shift."""
    seen = tracks.detections
    if not len(tracks.links):
        return tracks, 0.0
    step, _ = _steps(tracks)
    first = seen.frame.astype(np.int64) - seen.first_frame
    begin, end = first[tracks.links].T
    size = int(first.max()) + 1
    total, many = np.zeros((size, 3)), np.zeros(size)
    near = end - begin == 1
    np.add.at(total, end[near], step[near])
    np.add.at(many, end[near], 1)
    shift = np.cumsum(total / np.maximum(many, 1)[:, None], axis=0)
    still = replace(seen, position=seen.position - shift[first])
    return replace(tracks, detections=still), float(np.linalg.norm(shift, axis=1).max())


def _steps(tracks: Tracks) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The displacement a frame of each link, and the track that it ends in."""
    source, target = tracks.links.T
    position, frame = tracks.detections.position, tracks.detections.frame.astype(np.int64)
    step = (position[target] - position[source]) / (frame[target] - frame[source])[:, None]
    return step, tracks.track_id[target]
