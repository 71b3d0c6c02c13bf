"""Reasons why few or no detections were matched: other frames, units, axes, lengths or an offset."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError
from ..geometry.gating import pairs_within
from ..particles.detections import Detections

_SAMPLE = 2000
"""Number of found detections that are compared with other orders of the axes."""
_MANY, _MORE = 0.3, 2.0
"""Least share of them near true ones in another axis order, and least ratio to the share as given."""
_MOST_BYTES = 1 << 28
"""Memory limit for their pairs."""
_UNLIKE = 1.5
"""Ratio of the extents of both sides above which their units count as different."""


def why_nothing(found: Detections, true: Detections, gate: float) -> str:
    """Why no found detection lies within the gate of a true one, judged by the positions.

    Parameters
    ----------
    found, true : Detections
        Of the tracks and of the truth.
    gate : float

    Examples
    --------
    >>> true = Detections.from_table([0, 0], [[0, 0, 0], [0, 50, 90]])
    >>> why_nothing(Detections.from_table([0, 0], [[0, 0, 20], [0, 50, 110]]), true, 5.0)
    ... # doctest: +NORMALIZE_WHITESPACE
    'No detection of the tracks is nearer than 5 to a true one. The offset of the tracks from the
     truth is z, y, x = 0, 0, 20.'
    """
    if not len(found) or not len(true):
        return f"The {'tracks have' if len(true) else 'truth has'} no detections."
    frames = np.intersect1d(found.frame, true.frame)
    if not len(frames):
        spans = [f"{side.frame[0]} to {side.frame[-1]}" for side in (found, true)]
        return f"They have no common frame: the tracks are in frames {spans[0]}, the truth in {spans[1]}."
    reason = exchanged_axes(found, true, gate) or unlike_lengths(found, true)
    if not reason:
        sides = [side.take(np.isin(side.frame, frames)) for side in (found, true)]
        offset = np.subtract(*(np.median(side.position, axis=0) for side in sides))
        is_far = np.linalg.norm(offset) > gate
        reason = (
            f"The offset of the tracks from the truth is z, y, x = {_numbers(offset)}."
            if is_far
            else "Widen the gate."
        )
    return f"No detection of the tracks is nearer than {gate:g} to a true one. {reason}"


def unlike_lengths(found: Detections, true: Detections) -> str:
    """A sentence if units or extents differ; else empty.

    Examples
    --------
    >>> true = Detections.from_table([0, 0], [[0, 0, 0], [0, 50, 90]])
    >>> unlike_lengths(Detections.from_table([0, 0], [[0, 0, 0], [0, 5, 9]], unit="micrometer"), true)
    ... # doctest: +NORMALIZE_WHITESPACE
    'The tracks are in micrometer, the truth in pixel. Along z, y, x the tracks extend over 0, 4.9, 8.82,
     the truth over 0, 49, 88.2.'
    """
    messages = (
        [f"The tracks are in {found.unit}, the truth in {true.unit}."] if found.unit != true.unit else []
    )
    if len(found) and len(true):
        reach = [np.ptp(np.quantile(side.position, (0.01, 0.99), axis=0), axis=0) for side in (found, true)]
        least, most = np.minimum(*reach), np.maximum(*reach)
        if (most > _UNLIKE * least).any():
            over = [_numbers(lengths) for lengths in reach]
            messages.append(f"Along z, y, x the tracks extend over {over[0]}, the truth over {over[1]}.")
    return " ".join(messages)


def exchanged_axes(found: Detections, true: Detections, gate: float) -> str:
    """A sentence if many more detections match with the axes in another order; else empty.

    Examples
    --------
    >>> true = Detections.from_table([0, 0], [[0, 20, 40], [0, 50, 90]])
    >>> exchanged_axes(Detections.from_table([0, 0], [[40, 20, 0], [90, 50, 0]]), true, 5.0)
    'The axes are exchanged: x, y, z of the tracks are z, y, x of the truth.'
    """
    some = found.take(np.isin(found.frame, true.frame))
    some = some.take(np.unique(np.linspace(0, len(some) - 1, min(len(some), _SAMPLE)).astype(int)))
    frames = np.unique(some.frame)
    truth = true.take(np.isin(true.frame, frames))
    orders = list(permutations(range(3)))
    share = np.array([_share_near(some, truth, gate, order) for order in orders])
    best = int(share.argmax())
    if share[best] <= max(_MANY, _MORE * share[0]):
        return ""
    names = ", ".join("zyx"[axis] for axis in orders[best])
    return f"The axes are exchanged: {names} of the tracks are z, y, x of the truth."


def _share_near(found: Detections, true: Detections, gate: float, order: tuple[int, ...]) -> float:
    """Share of found detections, with their axes in this order, within the gate of true ones."""
    frames = np.unique(found.frame)
    here, there = (
        np.append(np.searchsorted(of.frame, frames), len(of)).astype(np.int64) for of in (found, true)
    )
    moved = np.ascontiguousarray(found.position[:, order])
    try:
        near = pairs_within(moved, true.position, gate, here, there, most_bytes=_MOST_BYTES).indptr
    except ResourceError:  # nearly all pairs are near, which shows nothing
        return 0.0
    return float((np.diff(near) > 0).mean()) if len(found) else 0.0


def _numbers(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
