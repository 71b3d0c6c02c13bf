"""Sweeps: beliefs about each detection from its past and its future, before links are chosen.

There is one sweep forward and one backward in time. In each frame, the Kalman filter predicts from all
possible predecessors, belief propagation gives the probabilities of these pairs, and the updated beliefs are
averaged with these probabilities (joint probabilistic data association; Fortmann, Bar-Shalom & Scheffe 1983).
The beliefs of the two directions are independent, so their combination counts no information twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .candidates import Pairs, kept_above
from .linking import LinkModel
from .movie import Movie

_ROUNDS = 2
"""Rounds of belief propagation between two frames after the first."""
_FAR = 2e-4
"""Odds, from one side alone, below which a pair is dropped."""

Belief = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Mean (N, axes, 2) of position and velocity, and covariance (N, axes, 3), of N detections."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs about N detections from either side in time, including the detection itself.

    Parameters
    ----------
    past, future : Belief
        Velocities of the future belief are those of reversed time.
    followed : (N,) bool array
        Whether the future contains information beyond the detection itself.
    alone : (N,), (N,) float64 arrays
        Probabilities that each detection is clutter, from its past and from its future.
    """

    past: Belief
    future: Belief
    followed: NDArray[np.bool_]
    alone: tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Swept:
    """The result of two sweeps.

    Parameters
    ----------
    beliefs : Beliefs
    pairs : Pairs
        The pairs that neither side excludes.
    chance : (P,) float64 array
        The smaller of the two probabilities of each pair from one side alone.
    """

    beliefs: Beliefs
    pairs: Pairs
    chance: NDArray[np.float64]


def swept(
    movie: Movie,
    pairs: Pairs,
    model: LinkModel,
    shift: NDArray[np.float64],
    *,
    forward: bool = False,
) -> Swept:
    """Beliefs from both sides, and the pairs that neither side excludes.

    Parameters
    ----------
    movie : Movie
    pairs : Pairs
    model : LinkModel
    shift : (N, axes) float64 array
        Predicted displacement per frame of each detection.
    forward : bool
        Whether only the past is used.
    """
    from . import sweep_cpu as kernels

    motion, (count, axes) = model.motion.floored(), movie.position.shape
    table = movie.transitions(motion, len(model.follow), shift)
    speed2, noise2 = (tuple(np.square(values).tolist()) for values in (motion.speed, motion.noise))
    gain_of_later = -np.log(model.start) - pairs.log_density
    later = np.append(np.cumsum((0.0, *model.follow)[::-1])[::-1][1:], 0.0) / model.end

    def one_way(backward: bool, indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> _Side:
        mean, cov = np.empty((count, axes, 2)), np.empty((count, axes, 3))
        known, alone, odds = np.empty(count), np.empty(count), np.empty(len(indices))
        new, lost = (model.end, model.start) if backward else (model.start, model.end)
        kernels.sweep(
            movie.position, movie.frame_start, backward, indptr.view(np.uint64), indices.view(np.uint32),
            shift, table, speed2, noise2, model.gain_of_gap(), gain_of_later, later, model.freedom,
            model.scale, model.clutter, model.clutter / new, lost, _ROUNDS, mean, cov, known, alone, odds,
        )  # fmt: skip
        return _Side((mean, cov), known, alone, odds)

    past = one_way(False, pairs.indptr, pairs.indices)
    indptr, indices, _, odds = kept_above(pairs.indptr, pairs.indices, past.odds, _FAR)
    future, followed = past, np.zeros(count)
    after = np.full(count, model.clutter)
    if model.two_sided and not forward:
        # What the past excludes, often most of the pairs, is no matter for the future.
        back_indptr, rows, place = by_later(indptr, indices)
        future = one_way(True, back_indptr, rows)
        odds, followed, after = np.minimum(odds, future.odds[place]), future.known, future.alone
        indptr, indices, _, odds = kept_above(indptr, indices, odds, _FAR)
    beliefs = Beliefs(past.belief, future.belief, followed > 0, (past.alone, after))
    return Swept(beliefs, Pairs(indptr, indices, pairs.log_density), odds / (1 + odds))


def by_later(
    indptr: NDArray[np.int64], indices: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """The pairs sorted by their later detection.

    Parameters
    ----------
    indptr, indices : (N + 1,) int64, (P,) int32 arrays
        As in `Pairs`.

    Returns
    -------
    indptr, indices : (N + 1,) int64, (P,) int32 arrays
        The same for the earlier detections of each one.
    place : (P,) int64 array
        Index of each of the pairs among these.
    """
    from .sweep_cpu import transpose

    back_indptr, rows = np.empty_like(indptr), np.empty_like(indices)
    place = np.empty(len(rows), dtype=np.int64)
    transpose(indptr, indices, back_indptr, rows, place)
    return back_indptr, rows, place


class _Side(NamedTuple):
    """Result of one sweep: beliefs, probabilities of a predecessor and of clutter (N,), pair odds (P,)."""

    belief: Belief
    known: NDArray[np.float64]
    alone: NDArray[np.float64]
    odds: NDArray[np.float64]
