"""Encounters: probabilities of the links of two tracks where they meet, by sums over whole tracks.

The evidence of an exchange runs around a loop, of two tracks and two frame pairs, and belief propagation
counts it more than once. Where two decided tracks come near each other, the sum over all ways in which they
may exchange detections and futures counts it once; but it knows the two tracks alone. So the probability of
a link is the mean of both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import LEAST
from ...gated.linking import Links
from ...geometry.neighbours import nearest
from ..model import Model, MotionModel
from ..model.movie import Movie, chain_ends
from .blocks import in_blocks
from .encounters_cpu import meet
from .jpda import steps_of

WINDOW = 6
"""Guard: frames before and after an encounter by which the tracks are known."""
_NEAR = 4.0
"""Guard: standard deviations of a prediction between detections that two tracks may exchange."""
_RIVALS = 3
"""Guard: nearest detections with which one may be exchanged."""
_LONGEST = 40
"""Guard: frames of an encounter; two that stay together longer are known by these."""
_DOUBT = float(np.exp(-5.0))
"""Error level: odds of an exchange below which links do not lie in an encounter."""


def with_encounters(movie: Movie, model: Model, links: Links) -> Links:
    """Links whose probability counts the exchanges with the tracks that they meet; on the host.

    Links that are compared by features keep theirs: the sums over tracks know positions alone.
    """
    p = links.probability
    by_features = model.features is not None and model.features.links()
    if p is None or not len(p) or by_features:
        return links
    odds = odds_of_exchange(movie, model, links.pairs)
    return replace(links, probability=np.where(odds > _DOUBT, (p + 1 / (1 + odds)) / 2, p))


def odds_of_exchange(movie: Movie, model: Model, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """(E,) odds that a link (E, 2) is wrong because its track exchanges with another, over all it meets."""
    tracks, wrong_into = _neighbours(len(movie), pairs), np.zeros(len(movie))
    meetings = _meetings(movie, model.motion, tracks)
    wrong = np.zeros((len(meetings), int(meetings[:, 3].max(initial=1)), 2))
    stated = np.zeros(len(movie), np.bool_)
    if movie.pins is not None:
        stated[movie.pins.forced[:, 1]] = True
    whole = tuple(
        np.ascontiguousarray(each) for each in (movie.position, model.local.flow, movie.when, movie.frame)
    )
    steps, delay = steps_of(movie, model), np.array(model.association.delay, np.float64)

    def sum_up(block: tuple[int, int]) -> None:
        meet(*block, whole, steps, delay, (*tracks, stated), meetings, WINDOW, wrong)

    in_blocks(sum_up, len(meetings), wrong)
    for side in range(2):
        here = meetings[:, side].copy()
        for t in range(wrong.shape[1]):
            now = (here >= 0) & (movie.frame[here] == meetings[:, 2] + t) & (t < meetings[:, 3])
            p = wrong[now, t, side]
            np.add.at(wrong_into, here[now], p / np.maximum(1 - p, LEAST))
            here[now] = tracks[0][here[now]]
    return wrong_into[pairs[:, 1]]


def _neighbours(count: int, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(N,) the next and the previous detection in the track, -1 for none, or where it divides or merges."""
    (tail, head), after, before = pairs.T, np.full(count, -1), np.full(count, -1)
    alone = (np.bincount(tail, minlength=count)[tail] == 1) & (np.bincount(head, minlength=count)[head] == 1)
    after[tail[alone]], before[head[alone]] = head[alone], tail[alone]
    return after, before


def _meetings(
    movie: Movie, motion: MotionModel, tracks: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """(M, 4) encounters: a detection of either track in the first frame, this frame, number of frames."""
    rows, (after, before) = np.arange(len(movie)), tracks
    within = _NEAR * _spread(motion)
    near, square = nearest(movie.position, movie.frame_start, rows, _RIVALS, within=within)
    row, place = np.nonzero((near >= 0) & (square <= within**2))
    pair = np.stack([row, near[row, place]], axis=1).astype(np.int64)
    linked = (after >= 0) | (before >= 0)
    pair = pair[linked[pair].any(axis=1)]  # of two detections without links nothing can be exchanged
    first = chain_ends(np.where(before >= 0, before, rows))
    turned = first[pair[:, 0]] > first[pair[:, 1]]
    pair[turned] = pair[turned, ::-1]
    key = np.unique(np.column_stack([first[pair], movie.frame[pair[:, 0]], pair]), axis=0)
    frame, new = key[:, 2], np.ones(len(key), np.bool_)
    new[1:] = (key[1:, :2] != key[:-1, :2]).any(axis=1) | (np.diff(frame) > WINDOW // 2)
    begin = np.flatnonzero(new)
    last = np.append(begin[1:], len(key))[: len(begin)] - 1
    frames = np.minimum(frame[last] - frame[begin] + 2, _LONGEST)
    return np.column_stack([key[begin, 3:], frame[begin], frames])


def _spread(motion: MotionModel) -> float:
    """Largest standard deviation of a detection from its prediction, by a track that is known for a while."""
    a, full, noise = motion.correlation[:, None], motion.variance, motion.noise
    xx, xs, ss = noise + 0 * full, 0 * full, full
    for _ in range(WINDOW):
        ss, xs = a * a * ss + full * (1 - a * a), a * xs
        xx, xs = xx + 2 * xs + ss, xs + ss
        spread = xx + noise
        xx, xs, ss = xx - xx * xx / spread, xs - xx * xs / spread, ss - xs * xs / spread
    return float(np.sqrt(spread.max()))
