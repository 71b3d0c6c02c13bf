"""CPU kernel of tracks: serial, without the GIL."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def number_tracks(source, target, track_id):  # pragma: no cover
    """Number tracks 0, 1, 2, … by their first detections and pass the numbers on along the links.

    source, target (E,) i8, by source. Written: track_id (N,) i8, which comes as -1.
    """
    link = tracks = 0
    for detection in range(len(track_id)):
        if track_id[detection] < 0:
            track_id[detection] = tracks
            tracks += 1
        while link < len(source) and source[link] == detection:
            track_id[target[link]] = track_id[detection]
            link += 1
