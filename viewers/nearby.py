"""Select a part of a movie around the current view, small enough to be tracked at once."""

from __future__ import annotations

import numpy as np

from outbid.particles.detections import Detections

MOST_DETECTIONS = 5_000
LEAST_FRAMES = 5


def part_around(
    detections: Detections,
    frame: int,
    centre: tuple[float, float] | None = None,
    most: int = MOST_DETECTIONS,
) -> Detections:
    """Frames around one with up to `most` detections; at least five frames, cropped if necessary.

    Parameters
    ----------
    detections : Detections
    frame : int
        Number of the frame in the middle.
    centre : (float, float), optional
        y, x of the middle of the square. Default: the median of the positions.
    most : int

    Examples
    --------
    >>> seen = Detections.from_table(np.repeat(np.arange(100), 10), np.zeros((1000, 3)))
    >>> np.unique(part_around(seen, 50, most=70).frame).tolist()
    [47, 48, 49, 50, 51, 52, 53]
    """
    distance = np.abs(detections.frame.astype(np.int64) - frame)
    if len(distance) == 0:
        return detections
    within = np.cumsum(np.bincount(np.minimum(distance, 10_000_000)))
    reach = max(int(np.searchsorted(within, most, side="right")) - 1, LEAST_FRAMES // 2)
    part = detections.take(distance <= reach)
    if len(part) <= most:
        return part
    middle = np.median(part.position[:, 1:], axis=0) if centre is None else np.asarray(centre)
    away = np.abs(part.position[:, 1:] - middle).max(axis=1)
    return part.take(away <= np.partition(away, most - 1)[most - 1])


def frames_around(frame: int, count: int, most: int = LEAST_FRAMES) -> range:
    """Range of at most `most` frames around `frame`, within a movie of `count` frames.

    Examples
    --------
    >>> frames_around(0, 9), frames_around(8, 9), frames_around(1, 3)
    (range(0, 5), range(4, 9), range(0, 3))
    """
    first = max(min(frame - most // 2, count - most), 0)
    return range(first, min(first + most, count))
