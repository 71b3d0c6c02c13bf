"""Values by which tracks are coloured: any column, measure of links, or measure of their motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.edit.filter import column_of, columns_in
from outbid.particles.tracks import Tracks

from .layers import link_speed

TRACK, SPEED, PROBABILITY = "track", "speed", "link_probability"
_GOLDEN = 0.618034
"""Exact: fraction of the golden mean, whose multiples set tracks of near numbers apart."""
_OUTSIDE = 1.0
"""Guard: per cent of the values at either end that a scale leaves out, for one of them may be far away."""


class Coloured(NamedTuple):
    """Values of detections, and the range of colours.

    Parameters
    ----------
    value : (N,) float64 array
        NaN where it is not known.
    low, high : float
        Values of the first and of the last colour.
    """

    value: NDArray[np.float64]
    low: float
    high: float

    @property
    def share(self) -> NDArray[np.float64]:
        """(N,) float64: from 0 at the first colour to 1 at the last."""
        return np.clip((self.value - self.low) / ((self.high - self.low) or 1.0), 0.0, 1.0)


def names_of(tracks: Tracks, measured: Mapping[str, NDArray] | None = None) -> list[str]:
    """What tracks can be coloured by.

    Parameters
    ----------
    tracks : Tracks
    measured : mapping of str to (N,) array, optional
        Further values of the detections, such as those of `measures_of`.
    """
    first = [PROBABILITY] if tracks.link_probability is not None else []
    return list(dict.fromkeys([*first, TRACK, SPEED, *columns_in(tracks), *(measured or {})]))


def coloured(tracks: Tracks, name: str, measured: Mapping[str, NDArray] | None = None) -> Coloured:
    """The values of a name of `names_of`.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 3]], features={"mass": [5, 7]})
    >>> tracks = Tracks(seen, np.array([[0, 1]]))
    >>> coloured(tracks, "mass").value.tolist(), coloured(tracks, "speed").value.tolist()
    ([5.0, 7.0], [3.0, 3.0])
    """
    if name == TRACK:
        return Coloured(np.asarray(tracks.track_id * _GOLDEN % 1.0, np.float64), 0.0, 1.0)
    if measured is not None and name in measured:
        value = np.asarray(measured[name], np.float64)
    elif name == SPEED:
        value = np.full(len(tracks.detections), np.nan)
        speed = link_speed(tracks)
        value[tracks.links[::-1, 0]] = speed[::-1]
        value[tracks.links[:, 1]] = speed
    else:
        value = column_of(tracks, name)
    if name == PROBABILITY:
        return Coloured(value, 0.0, 1.0)
    known = value[np.isfinite(value)]
    low, high = np.percentile(known, [_OUTSIDE, 100 - _OUTSIDE]).tolist() if len(known) else (0.0, 1.0)
    return Coloured(value, low, high)


def measures_of(tracks: Tracks) -> dict[str, NDArray[np.float64]]:
    """What `outbid measure` states of each track, for each of its detections."""
    from outbid.measuring import measure

    table = measure(tracks).tracks
    row = np.empty(tracks.track_count, np.int64)
    row[table["track_id"].to_numpy()] = np.arange(table.num_rows)
    return {
        name: table[name].to_numpy(zero_copy_only=False).astype(np.float64)[row[tracks.track_id]]
        for name in table.column_names
        if name != "track_id"
    }
