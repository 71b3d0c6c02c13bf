"""Headings: beliefs about a particle, separately for each pair of detections that it may connect.

A sweep (`sweep`) combines all possible predecessors of a detection into one belief. If particles move farther
than their spacing, this belief loses the direction of motion. Here a separate belief is kept for each
possible predecessor, from the past and from the future: two detections give a velocity, and a third one tests
it (mixtures are reduced one step later, as in the generalized pseudo-Bayesian estimator of second order; Blom
& Bar-Shalom 1988). It needs 1.2 to 1.6 times the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import Motion
from .candidates import Pairs, kept_above
from .linking import LinkModel
from .movie import Movie
from .sweep import Belief, Beliefs, Swept, by_later
from .weigh import Weighed, in_runs

_ROUNDS = 2
"""Rounds of belief propagation between two frames after the first."""
_FAR = 1e-3
"""Odds, from one side alone, below which a pair is dropped."""
_GUESS = 6
"""Initial capacity in beliefs per detection."""


@dataclass(frozen=True, eq=False)
class _Side:
    """Beliefs from one side in time, in the form of `headings_cpu`.

    slot, stop (N,) int64; known (N,), chance (S,) float64; belief (5 axes S,) float32; alone (N,) float64.
    """

    slot: NDArray[np.int64]
    stop: NDArray[np.int64]
    known: NDArray[np.float64]
    chance: NDArray[np.float64]
    belief: NDArray[np.float32]
    alone: NDArray[np.float64]

    def mixed(self, movie: Movie, motion: Motion) -> Belief:
        """Combine all beliefs about the state of each detection into one Gaussian."""
        from .headings_cpu import mixed

        count, axes = movie.position.shape
        mean, cov = np.empty((count, axes, 2)), np.empty((count, axes, 3))
        mixed(
            movie.position, self.slot, self.stop, self.known, self.chance, self.belief, *_variances(motion),
            mean, cov,
        )  # fmt: skip
        return mean, cov


def weighed_by_headings(
    movie: Movie, pairs: Pairs, model: LinkModel, shift: NDArray[np.float64], *, workers: int = 1
) -> Weighed:
    """Weigh pairs with separate beliefs for each probable pair; no earlier links are needed.

    Parameters
    ----------
    movie, pairs, model, shift, workers
        As in `weighed_softly`, as is the return value.

    Examples
    --------
    >>> from ..detections import Detections
    >>> from .movie import movie_of
    >>> from .candidates import pairs_of
    >>> from .linking import Linking
    >>> from .weigh import solved
    >>> rng = np.random.default_rng(0)
    >>> place, velocity = rng.uniform(0, 9, (81, 2)), rng.normal(0, 0.8, (81, 2))
    >>> flight = np.concatenate([place + frame * velocity for frame in range(8)])
    >>> movie = movie_of(Detections.from_table(np.repeat(np.arange(8), 81), flight), (1, 1, 1))
    >>> motion = Motion.constant_velocity((0.8, 0.8), noise=(0.01, 0.01))
    >>> model = LinkModel(motion, (0.98,), 0.02, 0.02, gate=(3.2, 3.2))
    >>> found = weighed_by_headings(movie, pairs_of(movie, model.gate), model, np.zeros((8 * 81, 2)))
    >>> links = solved(found, Linking.none(8 * 81))
    >>> came, goes = movie.order % 81, movie.order[links.follower] % 81
    >>> float(np.mean((came == goes)[links.follower >= 0])) > 0.95
    True
    """
    from .headings_weighed_cpu import futures, weigh_headings

    motion = model.motion.floored()
    table, (speed2, noise2) = movie.transitions(motion, len(model.follow), shift), _variances(motion)
    past, after, pairs, _ = _sides(movie, pairs, model, shift)
    near = np.empty(len(after.chance))
    futures(
        after.slot, after.stop, after.chance, after.belief, speed2, noise2,
        model.freedom > 0, near,
    )  # fmt: skip
    gain_of_row = model.freedom_to_link(past.alone, model.end)
    gain_of_col = model.freedom_to_link(after.alone, model.start) - np.log(model.start) - pairs.log_density
    distance2, gain = np.empty(len(pairs.indices)), np.empty(len(pairs.indices))
    size = np.empty(len(gain), dtype=np.int8)

    def weigh(run: tuple[int, int]) -> None:
        weigh_headings(
            *run, pairs.indptr, pairs.indices, movie.frame, movie.position, shift, table, noise2,
            (past.slot, past.stop, past.known, past.chance, past.belief),
            (after.slot, after.stop, after.known, after.chance, after.belief, near),
            model.gain_of_gap(), gain_of_row, gain_of_col, model.freedom, model.scale, distance2, size, gain,
        )  # fmt: skip

    in_runs(weigh, pairs.indptr, workers)
    return Weighed(pairs, gain, distance2, size)


def headed(
    movie: Movie, pairs: Pairs, model: LinkModel, shift: NDArray[np.float64], *, forward: bool = False
) -> Swept:
    """Beliefs from both sides, and the pairs that neither side excludes, as in `swept`.

    Parameters
    ----------
    movie, pairs, model, shift, forward
        As in `swept`, as is the return value, with all beliefs about a detection combined into one.
    """
    past, after, pairs, odds = _sides(movie, pairs, model, shift, forward=forward)
    motion = model.motion.floored()
    believed = past.mixed(movie, motion)
    future = after.mixed(movie, motion) if after.known.any() else believed
    return Swept(
        Beliefs(believed, future, after.known > 0, (past.alone, after.alone)), pairs, odds / (1 + odds)
    )


def _variances(motion: Motion) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Variances of velocity and noise along each axis; tuples give the compiler the number of axes."""
    return tuple(np.square(motion.speed).tolist()), tuple(np.square(motion.noise).tolist())


def _sides(
    movie: Movie, pairs: Pairs, model: LinkModel, shift: NDArray[np.float64], *, forward: bool = False
) -> tuple[_Side, _Side, Pairs, NDArray[np.float64]]:
    """Beliefs from past and future, the pairs that neither excludes, and their odds."""
    past, odds = _one_way(movie, pairs.indptr, pairs.indices, pairs.log_density, model, shift, backward=False)
    indptr, indices, _, odds = kept_above(pairs.indptr, pairs.indices, odds, _FAR)
    if forward or not model.two_sided:
        count = len(movie.frame)
        none, nothing = np.zeros(count, dtype=np.int64), np.empty(0, np.float32)
        after = _Side(none, none, np.zeros(count), np.empty(0), nothing, np.full(count, model.clutter))
        return past, after, Pairs(indptr, indices, pairs.log_density), odds
    # What the past excludes, often most of the pairs, is no matter for the future.
    back_indptr, rows, place = by_later(indptr, indices)
    after, back_odds = _one_way(movie, back_indptr, rows, pairs.log_density, model, shift, backward=True)
    odds = np.minimum(odds, back_odds[place])
    indptr, indices, _, odds = kept_above(indptr, indices, odds, _FAR)
    return past, after, Pairs(indptr, indices, pairs.log_density), odds


def _one_way(
    movie: Movie,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    log_density: NDArray[np.float64],
    model: LinkModel,
    shift: NDArray[np.float64],
    *,
    backward: bool,
) -> tuple[_Side, NDArray[np.float64]]:
    """Beliefs and odds of pairs from one side; pairs are sorted by the first detection in this direction."""
    from .headings_cpu import headings

    motion, count = model.motion.floored(), len(movie.frame)
    later = np.append(np.cumsum((0.0, *model.follow)[::-1])[::-1][1:], 0.0) / model.end
    new, lost = (model.end, model.start) if backward else (model.start, model.end)
    slot, stop, known, alone = np.empty(count, np.int64), np.empty(count, np.int64), *np.empty((2, count))
    odds, room = np.empty(len(indices)), _GUESS * count + 64
    chance, belief = headings(
        movie.position, movie.frame_start, backward, indptr.view(np.uint64), indices.view(np.uint32), shift,
        movie.transitions(motion, len(model.follow), shift), *_variances(motion), model.gain_of_gap(),
        -np.log(model.start) - log_density, later, model.freedom, model.scale, model.clutter,
        model.clutter / new, lost, _ROUNDS, slot, stop, known, alone, odds, np.empty(room),
        np.empty(room * 5 * movie.axes, np.float32),
    )  # fmt: skip
    return _Side(slot, stop, known, chance, belief, alone), odds
