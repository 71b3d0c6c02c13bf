"""Headings: what is believed of a particle that came from one detection to another.

A sweep (`sweep`) mixes all that may have come to a detection into one belief, and where particles go farther
than they are apart nothing is left of where each was heading. Here what is believed at a detection is kept
apart for each that may be the one before it, from its past and from its future: two detections tell a
velocity, and a third tells whether it was one (mixtures reduced one step later; Blom & Bar-Shalom 1988,
generalized pseudo-Bayesian of second order). It takes two to five times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .candidates import Pairs, kept_above
from .linking import Linking, LinkModel
from .motion import Motion
from .movie import Movie
from .sweep import Belief, Beliefs, Swept, swept
from .weigh import in_runs, soft_pass, solved

_ROUNDS = 2
"""Rounds of belief propagation between two frames after the first."""
_FAR = 1e-3
"""Odds, from one side alone, below which a pair is given up."""
_IMPROBABLE = 6e-4
"""Probability below which a pair is not looked at again."""
_GUESS = 4
"""Beliefs of a detection that there is room for at first."""
_MOST_LOG = 600.0
"""Logs are cut there, for floats are."""
Look = tuple[Callable[..., Swept], Callable[..., tuple[Linking, Pairs]]]
"""How a movie is looked at: what sweeps it before gaps are closed, and what links it."""
BY_DETECTIONS: Look = (swept, soft_pass)


def look_of(model: LinkModel, *, closely: bool) -> Look:
    """By headings if asked for and particles keep their way; by what is believed of detections otherwise.

    Parameters
    ----------
    model : LinkModel
    closely : bool
        Whether headings are asked for.

    Returns
    -------
    Look
        `headed` and `heading_pass`, or `swept` and `soft_pass`.
    """
    return (headed, heading_pass) if closely and model.motion.persistence > 0 else BY_DETECTIONS


@dataclass(frozen=True, eq=False)
class _Side:
    """What one side in time tells: beliefs as `headings_cpu.headings` writes them.

    slot (N,), following, owner (S,) int64; chance (S,), mean (S, axes, 2), cov (S, axes, 3); known,
    alone (N,); odds (P,).
    """

    slot: NDArray[np.int64]
    following: NDArray[np.int64]
    owner: NDArray[np.int64]
    chance: NDArray[np.float64]
    mean: NDArray[np.float64]
    cov: NDArray[np.float64]
    known: NDArray[np.float64]
    alone: NDArray[np.float64]
    odds: NDArray[np.float64]

    def mixed(self, movie: Movie, motion: Motion) -> Belief:
        """All that is believed of each detection as one Gaussian."""
        from .headings_cpu import mixed

        count, axes = movie.position.shape
        mean, cov = np.empty((count, axes, 2)), np.empty((count, axes, 3))
        mixed(
            movie.position, self.slot, self.following, self.chance, self.mean, self.cov, self.known,
            np.square(motion.speed), np.square(motion.noise), mean, cov,
        )  # fmt: skip
        return mean, cov


def heading_pass(
    movie: Movie,
    pairs: Pairs,
    model: LinkModel,
    known: Linking,
    shift: NDArray[np.float64],
    *,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> tuple[Linking, Pairs]:
    """Link the movie once, by what is believed of every probable pair; no earlier links are needed.

    Parameters
    ----------
    movie, pairs, model, known, shift, solver, workers
        As in `soft_pass`, and what is returned is.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .movie import movie_of
    >>> from .candidates import pairs_of
    >>> rng = np.random.default_rng(0)
    >>> place, velocity = rng.uniform(0, 9, (81, 2)), rng.normal(0, 0.8, (81, 2))
    >>> flight = np.concatenate([place + frame * velocity for frame in range(8)])
    >>> movie = movie_of(Detections.from_table(np.repeat(np.arange(8), 81), flight), (1, 1, 1))
    >>> motion = Motion.constant_velocity((0.8, 0.8), noise=(0.01, 0.01))
    >>> model = LinkModel(motion, (0.98,), 0.02, 0.02, gate=(3.2, 3.2))
    >>> none, still = Linking.none(8 * 81), np.zeros((8 * 81, 2))
    >>> found, _ = heading_pass(movie, pairs_of(movie, model.gate), model, none, still)
    >>> came, goes = movie.order % 81, movie.order[found.follower] % 81
    >>> float(np.mean((came == goes)[found.follower >= 0])) > 0.95
    True
    """
    from .headings_weighed_cpu import weigh_headings
    from .motion_cpu import messages

    motion, count = model.motion.floored(), len(movie.frame)
    table = motion.transitions(len(model.follow))
    speed2, noise2 = (tuple(np.square(values).tolist()) for values in (motion.speed, motion.noise))
    past, after, pairs, _ = _sides(movie, pairs, model, shift)
    place, weight, constant = np.empty_like(after.mean), np.empty_like(after.cov), np.empty(len(after.owner))
    messages(
        movie.position[after.owner], np.ones(len(after.owner), np.bool_), after.mean, after.cov, speed2,
        noise2, place, weight, constant,
    )  # fmt: skip
    gain_of_gap = np.log(np.maximum([0.0, *model.follow], 1e-12) / model.end)
    gain_of_row = model.freedom_to_link(past.alone, model.end)
    gain_of_col = model.freedom_to_link(after.alone, model.start) - np.log(model.start) - pairs.log_density
    usual = float(np.nan_to_num(np.median(constant))) if len(constant) else 0.0
    high, nearer = np.zeros_like(constant), 2 * (constant - usual)
    if model.freedom > 0:  # no distance makes up for these
        high, nearer = np.clip(constant - usual, -_MOST_LOG, _MOST_LOG), high
    future = (
        after.slot, after.following, after.chance, place.reshape(-1), weight.reshape(-1), np.exp(high),
        nearer, usual, after.known,
    )  # fmt: skip
    distance2, gain = np.empty(len(pairs.indices)), np.empty(len(pairs.indices))
    size = np.empty(len(gain), dtype=np.int64)

    def weigh(run: tuple[int, int]) -> None:
        weigh_headings(
            *run, pairs.indptr, pairs.indices, movie.frame, movie.position, shift, table, speed2, noise2,
            (past.slot, past.following, past.chance, past.mean.reshape(-1), past.cov.reshape(-1), past.known),
            future,
            gain_of_gap, gain_of_row, gain_of_col, model.freedom, model.scale, distance2, size, gain,
        )  # fmt: skip

    in_runs(weigh, pairs.indptr, workers)
    linking = replace(
        solved(pairs, known.follower, gain, distance2, np.zeros(count, np.int64), solver), size=size
    )
    indptr, indices, _, _ = kept_above(pairs.indptr, pairs.indices, linking.probability, _IMPROBABLE)
    return linking, Pairs(indptr, indices, pairs.log_density)


def headed(
    movie: Movie, pairs: Pairs, model: LinkModel, shift: NDArray[np.float64], *, forward: bool = False
) -> Swept:
    """Beliefs from both sides, and the pairs that neither side excludes, as `swept` tells them.

    Parameters
    ----------
    movie, pairs, model, shift, forward
        As in `swept`, and what is returned is: all beliefs of a detection mixed into one.
    """
    past, after, pairs, odds = _sides(movie, pairs, model, shift, forward=forward)
    motion = model.motion.floored()
    beliefs = Beliefs(
        past.mixed(movie, motion), after.mixed(movie, motion), after.known > 0, (past.alone, after.alone)
    )
    return Swept(beliefs, pairs, odds / (1 + odds))


def _sides(
    movie: Movie, pairs: Pairs, model: LinkModel, shift: NDArray[np.float64], *, forward: bool = False
) -> tuple[_Side, _Side, Pairs, NDArray[np.float64]]:
    """What the past tells, and the future; the pairs that neither excludes, and their odds."""
    from .sweep_cpu import transpose

    past = _one_way(movie, pairs.indptr, pairs.indices, pairs.log_density, model, shift, backward=False)
    indptr, indices, _, odds = kept_above(pairs.indptr, pairs.indices, past.odds, _FAR)
    if forward or not model.two_sided:
        nothing = np.full(len(movie.frame), -1, dtype=np.int64), np.empty(0, dtype=np.int64)
        no_mean = np.empty((0, movie.axes, 2))
        after = _Side(
            nothing[0], nothing[1], nothing[1], np.empty(0), no_mean, np.empty((0, movie.axes, 3)),
            np.zeros(len(movie.frame)), np.full(len(movie.frame), model.clutter), odds,
        )  # fmt: skip
        return past, after, Pairs(indptr, indices, pairs.log_density), odds
    # What the past excludes, often most of the pairs, is no matter for the future.
    back_indptr, rows = np.empty_like(indptr), np.empty_like(indices)
    place = np.empty(len(rows), dtype=np.int64)
    transpose(indptr, indices, back_indptr, rows, place)
    after = _one_way(movie, back_indptr, rows, pairs.log_density, model, shift, backward=True)
    odds = np.minimum(odds, after.odds[place])
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
) -> _Side:
    """What one side tells; pairs by the detection that comes first in its direction."""
    from .headings_cpu import headings

    motion, count = model.motion.floored(), len(movie.frame)
    table = motion.transitions(len(model.follow))
    gain_of_gap = np.log(np.maximum([0.0, *model.follow], 1e-12) / model.end)
    later = np.append(np.cumsum((0.0, *model.follow)[::-1])[::-1][1:], 0.0) / model.end
    new, lost = (model.end, model.start) if backward else (model.start, model.end)
    slot, known, alone = np.empty(count, np.int64), np.empty(count), np.empty(count)
    odds = np.empty(len(indices))
    speed2, noise2 = (tuple(np.square(values).tolist()) for values in (motion.speed, motion.noise))
    room, axes = _GUESS * count + 64, movie.axes
    following, owner, chance, mean, cov = headings(
        movie.position, movie.frame_start, backward, indptr.view(np.uint64), indices.view(np.uint32), shift,
        table, speed2, noise2, gain_of_gap, -np.log(model.start) - log_density, later, model.freedom,
        model.scale, model.clutter, model.clutter / new, lost, _ROUNDS, slot, known, alone, odds,
        *(np.empty(room, np.int64) for _ in range(2)), *(np.empty(room * n) for n in (1, 2 * axes, 3 * axes)),
    )  # fmt: skip
    mean, cov = mean.reshape(-1, axes, 2), cov.reshape(-1, axes, 3)
    return _Side(slot, following, owner, chance, mean, cov, known, alone, odds)
