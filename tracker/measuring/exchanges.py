"""Ways in which two tracks that meet may have exchanged detections, drawn by probability.

Two tracks that stay together over some frames may exchange at each of them, and back at another. A way is
worth what its steps are worth, each given the one before in the same track: so tracks that keep a direction
exchange a detection where they cross, but not their futures. All ways are summed by a forward pass, and ways
are drawn backwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..particles.tracks import Tracks

LONGEST = 16
"""Guard: frame pairs of one encounter; two that stay together longer meet several times."""

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


class Steps(NamedTuple):
    """Steps of tracks: standard deviation (A,) along each axis, and the correlation of consecutive ones."""

    deviation: Floats
    correlation: float


def steps_of(tracks: Tracks, inside: NDArray[np.bool_]) -> Steps:
    """The steps of links that neither divide nor merge."""
    step = np.diff(tracks.detections.position[tracks.links[inside]], axis=1)[:, 0]
    variance = np.square(step).mean(axis=0)
    deviation = np.sqrt(np.where(variance > 0, variance, np.inf))  # 2D data do not move along z
    before = np.full(len(tracks.detections), -1)
    before[tracks.links[inside, 1]] = np.arange(len(step))
    follows = before[tracks.links[inside, 0]]
    both, step = follows >= 0, step / deviation
    square = float(np.square(step[both]).sum())
    shared = float((step[both] * step[follows[both]]).sum())
    return Steps(deviation, float(np.clip(shared / square, -0.9, 0.99)) if square > 0 else 0.0)


def encounters(tracks: Tracks, rivals: Rows) -> tuple[Rows, Rows, Rows]:
    """Pairs of links (2, P), given as (P, 2), by encounters, the encounter of each, and its place there.

    An encounter is of two tracks, and of frame pairs that follow on one another.
    """
    label, frame, (one, other) = tracks.track_id[tracks.links[:, 0]], tracks.detections.frame, rivals.T
    turned = label[one] > label[other]
    one, other = np.where(turned, other, one), np.where(turned, one, other)
    order = np.lexsort((frame[tracks.links[one, 0]], label[other], label[one]))
    one, other = one[order], other[order]
    pairs = np.stack([one, other])
    source, target = tracks.links[pairs].transpose(2, 0, 1)
    new = np.ones(len(one), np.bool_)
    new[1:] = (source[:, 1:] != target[:, :-1]).any(axis=0)
    place = np.arange(len(one))
    place -= np.maximum.accumulate(np.where(new, place, 0))
    new |= place % LONGEST == 0
    return pairs, np.cumsum(new) - 1, place % LONGEST


def drawn_exchanges(
    tracks: Tracks,
    met: tuple[Rows, Rows, Rows],
    inside: NDArray[np.bool_],
    steps: Steps,
    rng: np.random.Generator,
    draws: int,
) -> NDArray[np.bool_]:
    """(K, P) whether tracks exchange at each pair of links, as `encounters` has these, in each draw."""
    _, group, place = met
    points, length = _points(tracks, met, inside)
    log = _log_weights(points / steps.deviation, steps.correlation)
    many, last = len(length), points.shape[1] - 1
    # z is 1 while both are exchanged: weights (G, 2, 2) of z at the point before, and at this one.
    sums = [np.where(np.arange(4).reshape(2, 2) == 0, 0.0, -np.inf)[None].repeat(many, axis=0)]
    for k in range(2, last + 1):
        step = log[:, k - 2] + sums[-1][..., None]
        ended = k > length + 1  # nothing is exchanged behind the last pair
        step[ended, :, 0, 1] = step[ended, :, 1, 0] = -np.inf
        sums.append(np.logaddexp.reduce(step, axis=1))
    way, rows = np.zeros((draws, many, last + 1), np.int64), np.arange(many)
    way[..., -2], way[..., -1] = np.divmod(_chosen(sums[-1].reshape(many, 4), rng, draws), 2)
    for k in range(last, 2, -1):
        now, then = way[..., k - 1], way[..., k]
        weight = log[rows, k - 2, :, now, then] + sums[k - 2][rows, :, now]
        way[..., k - 2] = _chosen(weight, rng, draws)
    return np.asarray((np.diff(way, axis=2) != 0)[:, group, place + 1])


def _points(tracks: Tracks, met: tuple[Rows, Rows, Rows], inside: NDArray[np.bool_]) -> tuple[Floats, Rows]:
    """(G, T + 3, 2, A) positions of both tracks before, during and after, NaN for none; and lengths (G,)."""
    pairs, group, place = met
    source, target = tracks.links[pairs].transpose(2, 0, 1)
    length, seen = np.bincount(group), tracks.detections.position
    before, after = np.full((2, len(seen)), -1)
    before[tracks.links[inside, 1]], after[tracks.links[inside, 0]] = tracks.links[inside].T
    points = np.full((len(length), int(length.max(initial=0)) + 3, 2, seen.shape[1]), np.nan)
    points[group, place + 2] = seen[target.T]
    first, last = place == 0, place == length[group] - 1
    points[group[first], 1] = seen[source.T[first]]
    for some, ahead, row in ((first, -2, before[source.T]), (last, 1, after[target.T])):
        found = seen[row[some]]
        found[row[some] < 0] = np.nan
        points[group[some], place[some] + 2 + ahead] = found
    return points, length


def _log_weights(points: Floats, correlation: float) -> Floats:
    """(G, T + 1, 2, 2, 2) log weights of points from the third on, by the ways there and at two before."""
    log = np.zeros((len(points), points.shape[1] - 2, 2, 2, 2))
    for way in np.ndindex(2, 2, 2):
        two, one, here = (points[:, k : points.shape[1] - 2 + k, :: 1 - 2 * way[k]] for k in range(3))
        step, last = here - one, one - two
        new = -0.5 * np.square(step)
        on = -0.5 * np.square(step - correlation * last) / (1 - correlation**2)
        log[(..., *way)] = np.nan_to_num(np.where(np.isnan(on), new, on)).sum(axis=(2, 3))
    return log


def _chosen(log: Floats, rng: np.random.Generator, draws: int) -> Rows:
    """One of the W ways for each draw (K, G), by their log weights (G, W) or (K, G, W)."""
    weight = np.exp(log - log.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    drawn = rng.random((draws, log.shape[-2], 1)) * weight[..., -1:]
    return np.asarray((drawn > weight).sum(axis=-1))
