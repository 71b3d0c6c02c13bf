"""Pins in linking with a gate: which rows they name, with chains of the cheapest links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..geometry.gating import pairs_within
from ..particles.detections import Detections
from ..pins.paths import Edges, with_chains
from ..pins.rows import Found, PinnedRows


def held_in(
    found: Found,
    detections: Detections,
    position: NDArray[np.float64],
    gates: tuple[float, float],
    longest_gap: int,
) -> PinnedRows:
    """Pins by row, with a chain of links for each pair of detections of one particle.

    Chains have the least sum of squared distances, where a frame without a detection counts as the longest.
    Positions are in the unit of the gates: of a link to the next frame, and over a gap.
    """
    pins = PinnedRows.of(found, len(detections))
    if not len(pins.same):
        return pins

    def between(first: int, last: int) -> Edges:
        frames = detections.frame[[first, last]]
        begin, stop = np.searchsorted(detections.frame, [frames[0], frames[1] + 1])
        here, frame = position[begin:stop], detections.frame[begin:stop]
        start = np.searchsorted(frame, np.arange(frames[0], frames[1] + 2))
        near = pairs_within(here, here, max(gates), start, start, (1, longest_gap + 1))
        tail = near.rows.order[np.repeat(np.arange(len(here)), np.diff(near.indptr))]
        head = near.cols.order[near.indices]
        lag = frame[head] - frame[tail]
        within = near.distance2 <= np.square(np.where(lag == 1, *gates))
        cost = near.distance2 + (lag - 1) * near.distance2.max(initial=0.0)
        return begin + tail[within], begin + head[within], cost[within]

    return with_chains(pins, detections.frame, between)
