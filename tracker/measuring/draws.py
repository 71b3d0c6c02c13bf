"""Links drawn by their probabilities, and the different tracks that occur in the draws.

A doubtful link competes with another of the same frames: the two are exchanged with the probability that both are
wrong, as far as lengths allow. What is left of its probability of being wrong cuts the track there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import expit

from ..tracks import Tracks

DRAWS = 16
"""Draws of the links: the spread of a statistic over them is known to a fifth."""
_SURE = 1 - 1e-3
"""Error level: links above this probability are in all draws."""
_NEAR = 8
"""Neighbours of a doubtful link among which its competitor is sought."""

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
    parts, lengths = [], []
    for number, label in enumerate(labels):
        order = np.lexsort((frame, label))
        size = np.bincount(label, minlength=len(keys[number]))
        place = np.concatenate([[0], np.cumsum(size)])
        for track in first[(first >= begin[number]) & (first < begin[number + 1])] - begin[number]:
            parts.append(order[place[track] : place[track + 1]])
            lengths.append((variant[begin[number] + track], len(parts) - 1))
    in_order = [part for _, part in sorted(lengths)]
    rows = [parts[part] for part in in_order]
    of_label = [variant[a:b] for a, b in zip(begin[:-1], begin[1:], strict=True)]
    drawn = of_label[1:] or of_label
    order = np.lexsort((frame, labels[0]))
    start = np.concatenate([[0], np.cumsum(np.bincount(labels[0], minlength=len(keys[0])))])
    middle = order[(start[:-1] + start[1:]) // 2]
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
    partner, longer = _partners(tracks, doubtful)
    paired = partner >= 0
    step = tracks.detections.position[target] - tracks.detections.position[source]
    usual = np.square(step[inside]).sum(axis=1).mean() / 3
    exchange = np.zeros(len(doubtful))
    both = np.minimum(wrong[doubtful[paired]], wrong[doubtful[partner[paired]]])
    exchange[paired] = np.minimum(both, expit(-longer[paired] / (2 * usual)))
    leads = paired & (np.arange(len(doubtful)) < partner)
    for _ in range(DRAWS):
        chance = rng.random(len(doubtful))
        chance[paired & ~leads] = chance[partner[paired & ~leads]]  # a pair is exchanged as one
        swapped = chance < exchange
        cut = ~swapped & (
            rng.random(len(doubtful)) < (wrong[doubtful] - exchange) / np.maximum(1 - exchange, 1e-9)
        )
        links = tracks.links.copy()
        links[doubtful[swapped], 1] = target[doubtful[partner[swapped]]]
        links = np.delete(links, doubtful[cut], axis=0)
        yield Tracks(tracks.detections, links[np.lexsort((links[:, 1], links[:, 0]))])


def _partners(tracks: Tracks, doubtful: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """For each doubtful link the other with which an exchange adds least to the squared lengths, and how much.

    -1 where this is not mutual.
    """
    seen, (source, target) = tracks.detections, tracks.links[doubtful].T
    begin, end = seen.position[source], seen.position[target]
    _, group = np.unique(
        np.column_stack([seen.frame[source], seen.frame[target]]), axis=0, return_inverse=True
    )
    best, order = np.full(len(doubtful), -1), np.argsort(group, kind="stable")
    longer = np.zeros(len(doubtful))
    for some in np.split(order, np.cumsum(np.bincount(group))[:-1]):
        if len(some) < 2:
            continue
        middle = (begin[some] + end[some]) / 2
        _, near = cKDTree(middle).query(middle, k=np.arange(2, min(_NEAR, len(some)) + 1))
        other = some[near]
        cost = -2 * ((end[other] - end[some][:, None]) * (begin[some][:, None] - begin[other])).sum(axis=2)
        best[some] = other[np.arange(len(some)), np.argmin(cost, axis=1)]
        longer[some] = cost.min(axis=1)
    mutual = (best >= 0) & (best[best] == np.arange(len(best)))
    return np.where(mutual, best, -1), longer
