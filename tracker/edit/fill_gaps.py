"""Add interpolated positions, with their times, in the gaps of tracks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..particles.detections import TIME, Detections
from ..particles.tracks import Tracks

FILLED = "filled"
"""Name of the feature that marks interpolated positions."""


def with_gaps_filled(tracks: Tracks) -> Tracks:
    """Fill the gaps of tracks: a position in every frame, on the straight line between the ends of the gap.

    Parameters
    ----------
    tracks : Tracks

    Returns
    -------
    Tracks
        With the feature ``filled``: 1 for a position that was interpolated, else 0. Other features are NaN
        there. The links over a gap are divided into steps, which share the probability of the link; cost
        and margin are those of the whole link.

    Examples
    --------
    >>> seen = Detections.from_table([0, 3], [[0, 0, 0], [0, 0, 6]])
    >>> filled = with_gaps_filled(Tracks(seen, np.array([[0, 1]])))
    >>> filled.detections.position[:, 2].tolist(), filled.detections.features["filled"].tolist()
    ([0.0, 2.0, 4.0, 6.0], [0, 1, 1, 0])
    """
    seen, frame = tracks.detections, tracks.detections.frame.astype(np.int64)
    source, target = tracks.links.T
    steps = frame[target] - frame[source]
    of = np.repeat(np.arange(len(steps)), steps)  # the link of each step, of which it is the nth
    nth = np.arange(len(of)) - np.repeat(np.cumsum(steps) - steps, steps) + 1
    added, count = nth < steps[of], len(seen)
    link, weight = of[added], (nth / steps[of])[added]
    when = np.concatenate([frame, frame[source[link]] + nth[added]])
    order = np.argsort(when, kind="stable")

    def with_steps(values: NDArray) -> NDArray:
        """The values and, between them, those on straight lines over the gaps."""
        between = (1 - weight) * values[source[link]].T + weight * values[target[link]].T
        return np.concatenate([values, between.T])[order]

    detections = Detections(
        when[order].astype(np.int32),
        with_steps(seen.position),
        seen.calibration,
        {
            name: with_steps(values)
            if name == TIME and values.dtype.kind in "iuf"
            else _padded(values, len(link))[order]
            for name, values in seen.features.items()
        }
        | {FILLED: np.repeat([0, 1], [count, len(link)])[order]},
    )
    end = np.where(added, count + np.cumsum(added) - 1, target[of])
    begin = np.where(nth == 1, source[of], np.roll(end, 1))
    links = np.argsort(order)[np.column_stack([begin, end])]
    sort = np.lexsort((links[:, 1], links[:, 0]))
    measures = {name: values[of][sort] for name, values in tracks.measures.items()}
    return Tracks(detections, links[sort], **measures)


def _padded(values: NDArray, count: int) -> NDArray:
    """Append as many NaN, or empty texts, to the values."""
    if count == 0:
        return values
    if values.dtype.kind in "fiub":
        return np.concatenate([values.astype(np.float64), np.full(count, np.nan)])
    return np.concatenate([values, np.full(count, "", values.dtype)])
