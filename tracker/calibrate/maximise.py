"""Maximisation: estimate motion, flow, misses, starts and ends from probable links, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..refine.choose import Sobriety
from ..refine.linking import Linking, LinkModel
from ..refine.movie import Movie
from .estimates import LONGEST, ROWS, motion_from
from .rates import rates_counted, rates_learned
from .tails import no_stretch, stretch_of, stretched, tail_from

_REACH = 4.5
"""Gate in standard deviations of a step; one in 6,000 Gaussian steps in 3D is longer."""
_MOST_REACH = 18.0
"""Largest gate for sparse particles, in standard deviations: few unrelated detections are that near, and
whole frames may jump."""
_ROOMS = 3.0
"""Largest gate if the step length varies between frames, in units of `room`."""
_TAIL_SAMPLE = 20_000
_WALL = 3.0
"""Distance from a wall, in standard deviations of a step, within which particles may be reflected."""
_SAMPLE = 200_000
"""Number of detections whose steps suffice to estimate motion."""
_LEAST = 1e-9
"""Least step for which gates are made, well above the rounding of usual coordinates."""
_ALIKE = 3.0
"""Weight, in steps, of the prior that motion is equal along all axes."""
_FEW, _AMISS = 100, 1.2
"""Least number of pairs of steps for a bias; assumed relative error of the step variance."""
_GROUPS = 8
"""Number of groups of particles that are estimated separately, for standard errors."""


@dataclass(frozen=True, eq=False)
class Learnt:
    """Estimates of motion and rates from links.

    Parameters
    ----------
    model : LinkModel
    step : (axes,) float64 array
        Root mean square step.
    products : (groups, ROWS, 6, axes) float64 array
        Sums of products of steps for each group of particles, for standard errors.
    """

    model: LinkModel
    step: NDArray[np.float64]
    products: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bias:
    """Bias of estimates from the links of a crowded movie.

    Parameters
    ----------
    variance : (axes,) float64 array
        Variance of true steps relative to that of linked steps.
    correlation : (ROWS, axes) float64 array
        Correlation of true steps minus that of linked steps.
    doubt : (ROWS,) float64 array
        Variance of this difference, per axis.
    rates : (4,) float64 array
        True rates of ends, starts, clutter and misses, relative to those estimated from matchings.
    stretch : (2, 2, K) float64 array
        Quantiles of squared distances of pairs, as returned by `stretch_of`.
    sobriety : (float, float)
        Correction of link probabilities, as returned by `sobriety_of`.
    """

    variance: NDArray[np.float64]
    correlation: NDArray[np.float64]
    doubt: NDArray[np.float64]
    rates: NDArray[np.float64]
    stretch: NDArray[np.float64]
    sobriety: Sobriety = (1.0, 0.0)

    @classmethod
    def none(cls, axes: int) -> Bias:
        """Bias of 0 for every estimate."""
        return cls(np.ones(axes), np.zeros((ROWS, axes)), np.zeros(ROWS), np.ones(4), no_stretch())

    def towards(self, other: Bias, share: float) -> Bias:
        """Weighted mean with another bias, whose distances and sobriety are taken unchanged."""
        return Bias(
            self.variance ** (1 - share) * other.variance**share,
            self.correlation * (1 - share) + other.correlation * share,
            self.doubt * (1 - share) ** 2 + other.doubt * share**2,
            self.rates ** (1 - share) * other.rates**share,
            other.stretch,
            other.sobriety,
        )


def learned(
    movie: Movie,
    linking: Linking,
    shift: NDArray[np.float64],
    model: LinkModel,
    max_gap: int,
    room: float,
    bias: Bias,
) -> Learnt:
    """Estimate the model and the root mean square step from the links.

    Parameters
    ----------
    movie : Movie
    linking : Linking
    shift : (N, axes) float64 array
        Predicted displacement per frame of each detection; motion is the residual.
    model : LinkModel
        The model used for linking; returned unchanged if there are no links.
    max_gap : int
        Largest number of frames in which a particle may be missing, for the next search.
    room : float
        Least radius of the gate, as far as steps allow.
    bias : Bias
        Bias of the links, as far as known.
    """
    learnt = motion_learned(movie, linking, shift, model, room, bias)
    if learnt.model is model:
        return learnt
    rates = rates_learned(movie, linking, model, max_gap, bias.rates)
    return replace(learnt, model=rates.put_into(learnt.model))


def motion_learned(
    movie: Movie,
    linking: Linking,
    shift: NDArray[np.float64],
    model: LinkModel,
    room: float,
    bias: Bias,
) -> Learnt:
    """Estimate the motion from links as `learned` does, but without changing the rates."""
    products = _products(movie, linking, shift, model)
    covariance, weight, step2, noisy = _covariances(products.sum(axis=0), bias)
    if weight[0] == 0:
        # Frames that all lie farther apart tell of none.
        kept = step2 if movie.time is None else model.motion.floored().step_variance(1)
        return Learnt(model, np.sqrt(kept), products)
    distance2, size, chance = _distances(linking, _telling(linking))
    distance2 = stretched(distance2, size, bias.stretch, movie.axes)
    freedom, scale = tail_from(distance2, size, chance, (model.freedom, model.scale))
    # Particles that never move would leave no room to look in.
    step = np.maximum(np.sqrt(step2), _LEAST * movie.far)
    motion = motion_from(covariance, weight, noisy)
    gate = gate_of(step, room, movie.reaches(motion).max())
    return Learnt(replace(model, motion=motion, gate=gate, freedom=freedom, scale=scale), step, products)


def bias_of(movie: Movie, linking: Linking, truth: Linking, model: LinkModel) -> Bias:
    """Bias of links found with a model, from a movie with known truth and no drift."""
    none, still = Bias.none(movie.axes), np.zeros_like(movie.position)
    (seen, weight, *_), (true, *_) = (
        _covariances(_products(movie, links, still, model).sum(axis=0), none) for links in (linking, truth)
    )
    if not (seen[0].all() and true[0].all()):
        return none
    rates = rates_learned(movie, linking, model, len(model.follow) - 1, none.rates, rounds=1)
    some = _telling(linking)
    right = truth.follower[linking.row[some]] == linking.col[some]
    told = weight / (weight + _FEW)
    return Bias(
        np.clip(true[0] / seen[0], 1 / _AMISS, _AMISS),
        told[:, None] * (true / true[0] - seen / seen[0]),
        told / (weight + _FEW),
        rates_counted(movie, truth, model).over(rates),
        stretch_of(*_distances(linking, some), right, movie.axes),
    )


def _telling(linking: Linking) -> NDArray[np.int64]:
    """A sufficient sample of pairs that are probable enough to estimate tails."""
    some = np.nonzero(linking.probability > 0.01)[0]
    return some[:: max(1, len(some) // _TAIL_SAMPLE)]


def _distances(
    linking: Linking, some: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Squared distances of some pairs, their dimensions, and their probabilities."""
    return linking.distance2[some], linking.size[some].astype(np.int64), linking.probability[some]


def gate_of(step: NDArray[np.float64], room: float, farthest: float = 1.0) -> tuple[float, ...]:
    """Radii of the gate along the axes.

    Parameters
    ----------
    step : (axes,) float64 array
        Root mean square step.
    room : float
        Least radius of the gate, as far as steps allow.
    farthest : float
        Largest step of a frame relative to `step`. The gate is enlarged by this factor, up to a multiple of
        `room`, beyond which there are too many other detections.
    """
    far = np.maximum(_REACH * step, np.minimum(_REACH * step * farthest, _ROOMS * room))
    return tuple(np.clip(room, far, np.maximum(_MOST_REACH * step, far)).tolist())


def uncertainty(learnt: Learnt, bias: Bias, rows: int) -> dict[str, float]:
    """Standard errors of the values learned from a number of rows.

    Ends and starts have the errors of counts. The other errors come from a jackknife over groups of particles
    (Efron & Tibshirani 1993, chapter 11).

    Parameters
    ----------
    learnt : Learnt
    bias : Bias
        Bias of the links that were used.
    rows : int
    """
    told = learnt.products[learnt.products[:, 0, 0, 0] > 0]
    if len(told) < 2:
        return {}
    whole, motions = told.sum(axis=0), []
    for products in whole - told:
        covariance, weight, _, noisy = _covariances(products, bias)
        motions.append((covariance[0], motion_from(covariance, weight, noisy)))
    # What a rehearsal told varies as much as the links that told it.
    told_by = 1 + whole[1, 0, 0] * bias.doubt[1]
    root, end, start = np.sqrt((len(told) - 1) * told_by), learnt.model.end, learnt.model.start
    errors = {
        "step": float(np.std([np.sqrt(variance.mean()) for variance, _ in motions]) * root),
        "noise": float(np.std([np.mean(motion.noise) for _, motion in motions]) * root),
        "end": float(np.sqrt(end * (1 - end) / rows)),
        "start": float(np.sqrt(start * (1 - start) / rows)),
    }
    if learnt.model.motion.persistence < LONGEST:  # no longer one is looked for
        errors["persistence"] = float(np.std([motion.persistence for _, motion in motions]) * root)
    return errors


def _products(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], model: LinkModel
) -> NDArray[np.float64]:
    """(groups, ROWS, 6, axes): sums of weights, weighted squares and products of steps."""
    from .maximise_cpu import groups_of, step_products

    step = np.sqrt(model.motion.step_variance(1))
    group = np.arange(len(movie.frame)) % _GROUPS
    groups_of(linking.before, group)
    products = np.zeros((_GROUPS, ROWS, 6, movie.axes))
    low, high = movie.bounds
    reach = np.minimum(_WALL * step, (high - low) / 10)
    low, high, reach = (tuple(values.tolist()) for values in (low, high, reach))
    ease = np.ones(1) if movie.pace is None else (1 / movie.pace)[movie.frame]
    step_products(
        linking.row, linking.col, linking.probability, movie.when, movie.position.reshape(-1),
        shift.reshape(-1), ease, linking.before, linking.trust, group,
        max(1, len(movie.frame) // _SAMPLE), low, high, reach, products,
    )  # fmt: skip
    products[:, 0, 2:4] = products[:, 0, 1:2]
    return products


def _covariances(
    products: NDArray[np.float64], bias: Bias
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Covariances of steps less flow (ROWS, axes), weights (ROWS,), mean square of steps (axes,), `noisy`.

    Products of steps are weighted by the fourth power of the probabilities, except in the last row, and are
    normalised to correlations: wrong links are uncorrelated with previous steps, and even a few would hide a
    persistence.
    """
    weight, crossed, here2, earlier2, seen2, noisy = np.moveaxis(products, 1, 0)
    total = float(weight[0, 0])
    known, step2 = _evened(here2[0], total), _evened(seen2[0], total)
    variance = known * bias.variance
    covariance = variance * (crossed / np.sqrt(np.maximum(here2 * earlier2, 1e-300)) + bias.correlation)
    covariance[0] = variance
    return (
        covariance,
        weight[:, 0] / (1 + weight[:, 0] * bias.doubt),
        step2 + np.maximum(variance - known, -step2 / 2),
        noisy.sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-300),
    )


def _evened(square: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """(axes,) mean squares from sums of squares; with few steps, axes are assumed to be similar."""
    return (square + _ALIKE * square.mean() / max(total, 1e-300)) / (total + _ALIKE)
