"""CPU kernels of tracks: follow links or labels; every kernel runs in one thread and releases the GIL."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..compute.kernels import kernel


@kernel
def first_wrong(links, frame):  # pragma: no cover
    """The first link that points outside the detections or not forward in time, or -1.

    links (E, 2) i8; frame (N,) i4.
    """
    count = len(frame)
    for link in range(len(links)):
        source, target = links[link, 0], links[link, 1]
        if source < 0 or target < 0 or source >= count or target >= count or frame[source] >= frame[target]:
            return link
    return -1


@kernel
def number_chains(links, track_id):  # pragma: no cover
    """Number tracks if no two links share a source or a target; returns whether that holds.

    links (E, 2) i8, by source. Written: track_id (N,) i8; of no meaning where the answer is no.
    """
    track_id[:] = -1
    link = tracks = 0
    for detection in range(len(track_id)):
        if track_id[detection] < 0:
            track_id[detection] = tracks
            tracks += 1
        if link < len(links) and links[link, 0] == detection:
            target = links[link, 1]
            if track_id[target] >= 0:
                return False
            track_id[target] = track_id[detection]
            link += 1
    # A source that comes twice, or too late, stops all links behind it.
    return link == len(links)


@kernel
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


@kernel
def follow_labels(label, frame, first, last, follower):  # pragma: no cover
    """Find the next detection of the same label; returns the first row whose label its frame repeats, or -1.

    label (N,) i8 below L, negative for none; frame (N,) i4 non-decreasing. Written: first, last (L,) i8
    detection of each label, follower (N,) i8, all of which come as -1.
    """
    for detection in range(len(label)):
        of = label[detection]
        if of < 0:
            continue
        before = last[of]
        if before < 0:
            first[of] = detection
        elif frame[before] == frame[detection]:
            return detection
        else:
            follower[before] = detection
        last[of] = detection
    return -1


@kernel
def at_targets(links, of_link, column, valid):  # pragma: no cover
    """Copy measures of links to the detections that the links reach.

    links (E, 2) i8; of_link (E,) f8. Written: column (N,) f8, 0 where no link arrives; valid (N/8,) u1 a bit
    a detection, the lowest first, set where one does.
    """
    column[:] = 0
    valid[:] = 0
    for link in range(len(links)):
        t = links[link, 1]
        column[t] = of_link[link]
        valid[t >> 3] |= np.uint8(1 << (t & 7))
