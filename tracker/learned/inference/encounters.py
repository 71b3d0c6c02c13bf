"""Encounters: probabilities of the links of two tracks where they meet, by sums over whole tracks.

The evidence of an exchange runs around a loop, of two tracks and two frame pairs, and belief propagation
counts it more than once. Where two decided tracks come near each other, the sum over all ways in which they
may exchange detections and futures counts it once; but it knows the two tracks alone. Frame pairs depend on
one another if each step continues the one before: so the probability of a link is a mean, in which the sum
has the correlation of consecutive steps as its weight.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, placed, to_host
from ...compute.tolerances import LEAST, NEGLIGIBLE
from ...gated.linking import Links
from ...geometry.neighbours import nearest
from ..model import AssociationModel, Model, MotionModel
from ..model.movie import Movie, chain_ends
from .blocks import in_blocks
from .encounters_cpu import NEVER, follow_tracks, may_exchange, meet
from .jpda import steps_of

WINDOW = 6
"""Guard: frames after an encounter by which the tracks are known."""
_NEAR = 4.0
"""Guard: standard deviations of a prediction between detections that two tracks may exchange."""
_RIVALS = 3
"""Guard: nearest detections with which one may be exchanged."""
_LONGEST = 40
"""Guard: frames of an encounter; two that stay together longer meet several times."""
_DOUBT = float(np.exp(-5.0))
"""Error level: odds of an exchange below which links do not lie in an encounter."""


def with_encounters(movie: Movie, model: Model, links: Links) -> Links:
    """Links whose probability counts the exchanges with the tracks that they meet, summed on the host.

    Links that are compared by features keep theirs: the sums over tracks know positions alone.
    """
    p, along = links.probability, model.motion.kept(1)
    by_features = model.features is not None and model.features.links()
    if p is None or not len(p) or by_features or along < NEGLIGIBLE:
        return links
    there = replace(movie, near=None, features=None), replace(model, features=None), links.pairs
    odds = array_module(p).asarray(odds_of_exchange(*placed(there, to_host)))
    return replace(links, probability=np.where(odds > _DOUBT, p + along * (1 / (1 + odds) - p), p))


def odds_of_exchange(movie: Movie, model: Model, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """(E,) odds that a link (E, 2) is wrong because its track exchanges with another, over all it meets."""
    after, before = tracks = _neighbours(len(movie), pairs)
    whole = movie.position, model.local.flow, movie.when, movie.frame
    delay = np.where(model.association.delay > 0, 1.0, NEVER)
    given = (
        tuple(np.ascontiguousarray(each) for each in whole), steps_of(movie, model),
        np.log(model.association.delay, out=delay, where=delay > 0),
    )  # fmt: skip
    single = _alone(model.association)
    shape, own = (len(movie), *model.motion.variance.shape), np.zeros(len(movie))
    filters = np.empty(shape[:2], np.float32), np.empty((*shape, 5), np.float32)
    starts = np.flatnonzero(before < 0)
    in_blocks(lambda block: follow_tracks(*block, *given, after, starts, own, *filters), len(starts), own)
    near = _near(movie, model.motion, tracks)
    likely, test = np.empty(len(near), np.bool_), (*given, single, tracks, near, own, *filters)
    in_blocks(lambda block: may_exchange(*block, *test, likely), len(near), own)
    meetings = _runs(movie, near[likely], chain_ends(np.where(before >= 0, before, np.arange(len(movie)))))
    stated, begin = np.zeros(len(movie), np.bool_), 2 * (np.cumsum(meetings[:, 3]) - meetings[:, 3])
    if movie.pins is not None:
        stated[movie.pins.forced[:, 1]] = True
    rows, wrong = np.zeros(2 * meetings[:, 3].sum(), np.int64), np.zeros(2 * meetings[:, 3].sum())
    sums = (*given, single, (*tracks, stated), meetings, begin, filters, WINDOW, rows, wrong)
    in_blocks(lambda block: meet(*block, *sums), len(meetings), own)
    into = np.bincount(rows, wrong / np.maximum(1 - wrong, LEAST), len(movie))
    return np.asarray(into[pairs[:, 1]])


def _neighbours(count: int, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(N,) the next and the previous detection in the track, -1 for none, or where it divides or merges."""
    (tail, head), after, before = pairs.T, np.full(count, -1), np.full(count, -1)
    alone = (np.bincount(tail, minlength=count)[tail] == 1) & (np.bincount(head, minlength=count)[head] == 1)
    after[tail[alone]], before[head[alone]] = head[alone], tail[alone]
    return after, before


def _alone(rates: AssociationModel) -> float:
    """Log weight of a detection alone, which may be clutter, over that of a track's start and end."""
    ends = np.prod([max(1 - float(each.sum()), LEAST) for each in (rates.delay, rates.delay_back)])
    return float(np.log1p(rates.clutter / max(1 - rates.clutter, LEAST) / ends))


def _near(
    movie: Movie, motion: MotionModel, tracks: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """(P, 2) pairs of detections in a frame, of two tracks that may exchange them."""
    rows, (after, before) = np.arange(len(movie)), tracks
    within = _NEAR * _spread(motion)
    near, square = nearest(movie.position, movie.frame_start, rows, _RIVALS, within=within)
    near = np.where((near >= 0) & (square <= within**2), near, -1)
    row, place = np.nonzero(near >= 0)
    other, linked = near[row, place].astype(np.int64), (after >= 0) | (before >= 0)
    # Each pair once; and of two detections without links nothing can be exchanged.
    kept = (linked[row] | linked[other]) & ((row < other) | (near[other] != row[:, None]).all(axis=1))
    return np.column_stack([row[kept], other[kept]])


def _runs(movie: Movie, pair: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """(M, 4) encounters of pairs (P, 2): a detection of either track in the first frame, it, how many frames.

    first (N,) is the first detection of each track.
    """
    turned = first[pair[:, 0]] > first[pair[:, 1]]
    pair[turned] = pair[turned, ::-1]
    frame = movie.frame[pair[:, 0]].astype(np.int64)
    order = np.lexsort((frame, first[pair[:, 1]], first[pair[:, 0]]))
    pair, frame = pair[order], frame[order]
    new = np.ones(len(pair), np.bool_)
    new[1:] = (first[pair[1:]] != first[pair[:-1]]).any(axis=1) | (np.diff(frame) > WINDOW // 2)
    begun = frame[np.flatnonzero(new)][np.cumsum(new) - 1]
    new[1:] |= (frame - begun)[1:] // _LONGEST != (frame - begun)[:-1] // _LONGEST
    begin = np.flatnonzero(new)
    last = np.append(begin[1:], len(pair))[: len(begin)] - 1
    return np.column_stack([pair[begin], frame[begin], frame[last] - frame[begin] + 2])


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
