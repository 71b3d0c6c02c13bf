"""Links drawn by their probabilities, and the different tracks that occur in the draws.

An uncertain link competes with others of the same frames: the tracks of two may be exchanged while both are
uncertain, as `exchanges` draws it. The remaining probability that the link is wrong cuts the track there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ..compute.tolerances import LEAST
from ..particles.tracks import Tracks
from .exchanges import Steps, drawn_exchanges, encounters, steps_of

DRAWS = 16
"""Draws of the links: the spread of a statistic over them is known to a fifth."""
_TRIED = 4
"""Guard: draws of exchanges for each that is used, by which their probabilities are known."""
_SURE = 1 - 1e-3
"""Error level: links above this probability are in all draws."""
_UNLIKELY = 20.0
"""Error level: logarithm of odds below which an exchange is ignored."""
_NEAR = 8
"""Neighbours of an uncertain link among which its competitors are sought."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Variants:
    """The different tracks that occur in the draws, V of them.

    Parameters
    ----------
    rows : (M,) int64 array
        Detections of each, by frame, one after the other.
    start : (V + 1,) int64 array
        Where each begins in `rows`.
    drawn : (K, V) float64 array
        1 for the tracks of a draw; one draw without probabilities.
    own : (T,) int64 array
        Each track as it was given.
    instead : (K, T) int64 array
        What has the middle detection of each track in a draw.
    """

    rows: Rows
    start: Rows
    drawn: NDArray[np.float64]
    own: Rows
    instead: Rows

    @property
    def owner(self) -> Rows:
        """(M,) which track each of `rows` belongs to."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def variants_of(tracks: Tracks, rng: np.random.Generator) -> Variants:
    """The tracks, and those of draws of their links if the links have probabilities."""
    frame = tracks.detections.frame
    labels = [tracks.track_id, *(each.track_id for each in _draws(tracks, rng))]
    codes = rng.integers(0, 2**63, len(frame), dtype=np.uint64)
    keys = [_sums(codes, label) for label in labels]
    _, first, variant = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    begin = np.cumsum([0, *(len(key) for key in keys)])
    orders = [np.lexsort((frame, label)) for label in labels]
    starts = [np.concatenate([[0], np.cumsum(np.bincount(label))]) for label in labels]
    draw = np.searchsorted(begin, first, side="right") - 1  # in which each variant occurs first
    rows = [
        orders[k][slice(*starts[k][at : at + 2])] for k, at in zip(draw, first - begin[draw], strict=True)
    ]
    of_label = [variant[a:b] for a, b in zip(begin[:-1], begin[1:], strict=True)]
    drawn = of_label[1:] or of_label
    middle = orders[0][(starts[0][:-1] + starts[0][1:]) // 2]
    return Variants(
        np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64),
        np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64),
        np.array([np.bincount(each, minlength=len(rows)) for each in drawn], dtype=np.float64),
        of_label[0],
        np.array([of[label[middle]] for of, label in zip(drawn, labels[1:] or labels, strict=True)]),
    )


def _sums(codes: NDArray[np.uint64], label: Rows) -> NDArray[np.uint64]:
    """Sum of the random codes of each track, which differs for different sets of detections."""
    sums = np.zeros(int(label.max(initial=-1)) + 1, dtype=np.uint64)
    np.add.at(sums, label, codes)
    return sums


def _draws(tracks: Tracks, rng: np.random.Generator) -> Iterator[Tracks]:
    """Draws of the links; none if these have no probabilities, or all are sure."""
    if tracks.link_probability is None:
        return
    source, target = tracks.links.T
    inside = (tracks.successors[source] == 1) & (tracks.predecessors[target] == 1)
    wrong = 1 - np.nan_to_num(tracks.link_probability, nan=1.0)
    doubtful = np.flatnonzero(inside & (wrong > 1 - _SURE))
    if len(doubtful) == 0:
        return
    doubt, steps = wrong[doubtful], steps_of(tracks, inside)
    met = encounters(tracks, doubtful[_rivals(tracks, doubtful, steps)])
    ways = drawn_exchanges(tracks, met, inside, steps, rng, _TRIED * DRAWS)
    pairs, group, _ = met
    pairs = np.searchsorted(doubtful, pairs)
    each = ways.mean(axis=0)  # chance that a pair is exchanged, if it were not for other tracks
    total = np.bincount(pairs.ravel(), np.tile(each, 2), len(doubtful))
    most, needed = (np.bincount(group, value[pairs].sum(axis=0)) for value in (doubt, total))
    share = np.minimum(most / np.maximum(needed, LEAST), 1)
    left = np.maximum(doubt - np.bincount(pairs.ravel(), np.tile(each * share[group], 2), len(doubtful)), 0)
    for way in ways[:DRAWS]:
        some = rng.permutation(np.flatnonzero(rng.random(len(share)) < share))
        turn = np.full(len(share), len(share))
        turn[some] = np.arange(len(some))
        now = np.flatnonzero(way & (turn[group] < len(share)))
        first = np.full(len(doubtful), len(share))
        for links in pairs[:, now]:  # a link is exchanged by one encounter
            np.minimum.at(first, links, turn[group[now]])
        clash = np.unique(group[now][(first[pairs[:, now]] != turn[group[now]]).any(axis=0)])
        now = now[~np.isin(group[now], clash)]
        kept = rng.random(len(doubtful)) >= left
        kept[pairs[:, now]] = True
        links = tracks.links.copy()
        links[doubtful[pairs[:, now]], 1] = target[doubtful[pairs[::-1, now]]]
        links = np.delete(links, doubtful[~kept], axis=0)
        yield Tracks(tracks.detections, links[np.lexsort((links[:, 1], links[:, 0]))])


def _rivals(tracks: Tracks, doubtful: Rows, steps: Steps) -> Rows:
    """Pairs (P, 2) of doubtful links of the same frames that may be exchanged, among their numbers (D,)."""
    frames = tracks.detections.frame[tracks.links[doubtful]]
    begin, end = tracks.detections.position[tracks.links[doubtful]].transpose(1, 0, 2) / steps.deviation
    group = np.unique(frames, axis=0, return_inverse=True)[1].ravel()  # (D, 1) in NumPy 2.0.0
    order, found = np.argsort(group, kind="stable"), [np.empty((0, 2), np.int64)]
    for some in np.split(order, np.cumsum(np.bincount(group))[:-1]):
        if len(some) > 1:
            middle = (begin[some] + end[some]) / 2
            near = cKDTree(middle).query(middle, k=np.arange(2, min(_NEAR + 1, len(some)) + 1))[1]
            found.append(np.column_stack([np.repeat(some, near.shape[1]), some[near.ravel()]]))
    pair = np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
    one, other = pair.T
    longer = ((end[other] - end[one]) * (begin[other] - begin[one])).sum(axis=1)
    return np.asarray(pair[longer < _UNLIKELY])
