"""Learning: what probable links tell of motion, flow, misses, starts and ends, and how surely."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .estimates import LAGS, motion_from, tail_from
from .linking import Linking, LinkModel
from .movie import Movie

_REACH = 4.5
"""Gate in standard deviations of a step: 3D Gaussian steps beyond it are one in 6,000."""
_MOST_REACH = 18.0
"""Where particles are sparse the gate has room, up to so many standard deviations: few strangers are that
near, and whole frames may jump."""
_TAIL_SAMPLE = 20_000
_WALL = 3.0
"""Steps in one frame, in standard deviations, within which a wall may turn a particle."""
_SAMPLE = 50_000
_LEAST = 1e-9
"""Least step that gates are made for, in units of the largest coordinate: well above its rounding."""
_MISSED = 0.05
"""Share of detections missed that is tried first."""
_ALIKE = 3.0
"""Steps' worth of belief that all axes move as much."""
_WORTH = 0.1
"""Probability of a pair that is tried in matchings that are drawn;"""
_SWEEPS, _WASTE = 5, 2
"""how often, and how many of the first matchings tell too much of that with which they began."""
_MOST_CLUTTER = 0.98
"""Share of ends and starts that may be clutter."""
_GROUPS = 8
"""Parts of the particles that are estimated apart, for the uncertainties."""


@dataclass(frozen=True, eq=False)
class Learnt:
    """What links tell.

    Parameters
    ----------
    model : LinkModel
    step : (axes,) float64 array
        Root mean square step.
    products : (groups, LAGS, 5, axes) float64 array
        Sums of products of steps of some groups of particles apart, for the uncertainty.
    """

    model: LinkModel
    step: NDArray[np.float64]
    products: NDArray[np.float64]


def learned(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], model: LinkModel, max_gap: int, room: float
) -> Learnt:
    """The model and the root mean square step that the links tell.

    Parameters
    ----------
    movie : Movie
    linking : Linking
    shift : (N, axes) float64 array
        Displacement in one frame that is foretold of each detection; motion is what is left.
    model : LinkModel
        By which they were linked; it stays where there are none.
    max_gap : int
        Frames that a particle may be missing, to be looked for next.
    room : float
        Radius that the gate has at least, as far as steps allow.
    """
    learnt = motion_learned(movie, linking, shift, model, room)
    if learnt.model is model:
        return learnt
    drawn = sampled(linking)
    follow, end, start = _rates(movie, linking, drawn, len(model.follow), max_gap)
    clutter = min(_clutter(movie, linking, drawn, model), _MOST_CLUTTER * min(end, start))
    rates = replace(learnt.model, follow=follow, end=end, start=start, clutter=clutter)
    return replace(learnt, model=rates)


def motion_learned(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], model: LinkModel, room: float
) -> Learnt:
    """As `learned`, but for the rates, which stay as they are."""
    products = _products(movie, linking, shift, np.sqrt(model.motion.step_variance(1)))
    covariance, weight, step2 = _covariances(products.sum(axis=0))
    if weight[0] == 0:
        return Learnt(model, np.sqrt(step2), products)
    certain = np.nonzero(linking.probability > 0.01)[0]
    certain = certain[:: max(1, len(certain) // _TAIL_SAMPLE)]
    freedom, scale = tail_from(
        linking.distance2[certain], linking.size[certain], linking.probability[certain]
    )
    # Particles that never move would leave no room to look in.
    step = np.maximum(np.sqrt(step2), _LEAST * max(float(np.abs(movie.bounds).max()), 1.0))
    motion, gate = motion_from(covariance, weight), gate_of(step, room)
    return Learnt(replace(model, motion=motion, gate=gate, freedom=freedom, scale=scale), step, products)


def gate_of(step: NDArray[np.float64], room: float) -> tuple[float, ...]:
    """Radii along the axes outside of which no particle is looked for in the next frame."""
    return tuple(np.clip(room, _REACH * step, _MOST_REACH * step).tolist())


def uncertainty(learnt: Learnt, rows: int) -> dict[str, float]:
    """Standard errors of what was learned from so many rows, from the scatter between groups of particles."""
    motions = []
    for products in learnt.products:
        covariance, weight, _ = _covariances(products)
        if weight[0] > 0:
            motions.append((covariance[0], motion_from(covariance, weight, learnt.model.motion)))
    if len(motions) < 2:
        return {}
    root, end, start = np.sqrt(len(motions)), learnt.model.end, learnt.model.start
    return {
        "step": float(np.std([np.sqrt(variance.mean()) for variance, _ in motions], ddof=1) / root),
        "persistence": float(np.std([motion.persistence for _, motion in motions], ddof=1) / root),
        "noise": float(np.std([np.mean(motion.noise) for _, motion in motions], ddof=1) / root),
        "end": float(np.sqrt(end * (1 - end) / rows)),
        "start": float(np.sqrt(start * (1 - start) / rows)),
    }


def _products(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], step: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(groups, LAGS, 5, axes): weights, weighted squares and products of steps, as the kernel sums them."""
    from .learn_cpu import groups_of, step_products

    group = np.arange(len(movie.frame)) % _GROUPS
    groups_of(linking.before, group)
    products = np.zeros((_GROUPS, LAGS, 5, movie.axes))
    low, high = movie.bounds
    step_products(
        linking.row, linking.col, linking.probability, movie.frame, movie.position, shift, linking.before,
        linking.trust, group, max(1, len(movie.frame) // _SAMPLE), low, high,
        np.minimum(_WALL * step, (high - low) / 10), products,
    )  # fmt: skip
    return products


def _covariances(
    products: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Covariances of steps less flow by lag (LAGS, axes), weights (LAGS,), mean square of steps (axes,).

    Products of steps count by the fourth power of the probabilities and as correlations: wrong links
    know no past, and even few of them would hide a persistence.
    """
    weight, crossed, here2, earlier2, seen2 = np.moveaxis(products, 1, 0)
    total = float(weight[0, 0])
    variance, step2 = _evened(here2[0], total), _evened(seen2[0], total)
    covariance = variance * crossed / np.sqrt(np.maximum(here2 * earlier2, 1e-300))
    covariance[0] = variance
    return covariance, weight[:, 0], step2


def _evened(square: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """(axes,) mean squares from sums of squares; where there are few, the axes are taken to be much alike."""
    return (square + _ALIKE * square.mean() / max(total, 1e-300)) / (total + _ALIKE)


def sampled(linking: Linking) -> NDArray[np.float64]:
    """(Q,) shares of the pairs in some matchings, drawn as likely as they are.

    Where many links could swap, belief propagation takes what they exclude for a chance of none, and sees
    two to four times as many ends as there are. Few matchings tell little of a pair, but enough of all.
    Pairs that are hardly probable are not drawn: they are what a detection without a link may have.
    """
    from .sampling_cpu import sample_matchings

    row, col, chance, count = linking.row, linking.col, linking.probability, len(linking.follower)
    worth = (chance > _WORTH) | (linking.follower[row] == col)
    few, drawn = np.nonzero(~worth)[0], np.nonzero(worth)[0]
    # Odds of each against no link at all, and of all those of a row or of a column together.
    odds = [
        chance[few] / np.maximum(1 - np.bincount(ends, chance, count), 1e-9)[ends[few]] for ends in (row, col)
    ]
    rest = [np.bincount(ends[few], each, count) for ends, each in zip((row, col), odds, strict=True)]
    gain = linking.odds[drawn] - np.log1p(rest[0])[row[drawn]] - np.log1p(rest[1])[col[drawn]]
    share = np.empty(len(row))
    seen = np.empty(len(drawn))
    sample_matchings(
        np.searchsorted(row[drawn], np.arange(count + 1)), col[drawn], gain, linking.follower.copy(),
        linking.before.copy(), _SWEEPS, _WASTE, seen,
    )  # fmt: skip
    free = 1 - np.bincount(row[drawn], seen, count)
    share[drawn], share[few] = seen, (free / (1 + rest[0]))[row[few]] * odds[0]
    return share


def _clutter(movie: Movie, linking: Linking, chance: NDArray[np.float64], model: LinkModel) -> float:
    """Share of detections that are no particle, by a model's links: those without any on either side."""
    inner = (movie.frame > movie.frame[0]) & (movie.frame < movie.frame[-1])
    if not inner.any() or model.clutter == 0:
        return 0.0
    leaves, reached = (np.bincount(ends, chance, len(inner))[inner] for ends in (linking.row, linking.col))
    lone = float(np.mean(np.maximum(1 - leaves, 0) * np.maximum(1 - reached, 0)))
    # Particles that start and end at once are alone as well.
    short = (model.end - model.clutter) * (model.start - model.clutter) / (1 - model.clutter)
    return lone * model.clutter / (model.clutter + short)


def _rates(
    movie: Movie, linking: Linking, chance: NDArray[np.float64], tried: int, max_gap: int
) -> tuple[tuple[float, ...], float, float]:
    """Probabilities of being seen next after 1, 2, … frames (some were tried), of an end and of a start."""
    count, first, last = len(movie.frame), movie.frame[0], movie.frame[-1]
    gap = movie.frame[linking.col] - movie.frame[linking.row]
    reach = max(int(gap.max(initial=1)), tried)
    leaves = np.bincount(linking.row, chance, count)
    reached = np.bincount(linking.col, chance, count)
    # Only where the movie is long enough to show what happens.
    early, late = movie.frame <= last - reach, movie.frame >= first + reach
    if not early.any():
        early, late = movie.frame < last, movie.frame > first
    seen = early[linking.row]
    shares = np.bincount(gap[seen], chance[seen], reach + 1)[1:] + 0.5
    lost = float(np.sum(1 - leaves[early])) + 0.5
    total = float(shares.sum())
    # Links over three frames get lost easily: misses that are independent tell how many there are at least.
    # But particles that meet are seen as one for some frames. What was not tried yet begins with a rare miss.
    over = np.arange(1, reach + 1)
    missed = float(((over - 1) * shares).sum() / (over * shares).sum()) if tried > 1 else _MISSED
    odds = missed ** np.arange(max_gap + 1)
    odds /= odds.sum()
    if tried > max_gap:
        odds = np.maximum(odds, shares[: max_gap + 1] / total)
    follow = tuple((odds / odds.sum() * total / (total + lost)).tolist())
    end = lost / (total + lost)
    # Where hardly any link is sure, shares of one column may exceed 1.
    start = (max(float(np.sum(1 - reached[late])), 0.0) + 0.5) / (int(late.sum()) + 1.0)
    return follow, min(end, 0.5), min(start, 0.5)
