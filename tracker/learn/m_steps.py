"""M-steps: one function for each parameter group, from the expected statistics of a posterior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..inference.blocks import in_blocks
from ..inference.posterior import LinkPosterior
from ..inference.records import Moments
from ..model import AssociationModel, Model, MotionModel, Surroundings
from ..model.movie import Movie, summed, weighted
from .field import Fields
from .field_cpu import mean_steps

PRIOR = 5.0
"""Prior: pseudo-counts of every rate and variance."""
_RENEWAL, _CLUTTER, _FALL = 0.1, 0.01, 0.1
"""Prior: probability of renewal, of clutter, and of one more missed frame."""
_CORRELATION = -0.5, 0.995
"""Prior: least and largest correlation of a class. Positions of white noise have -.5; a class below would
explain clutter where a particle is missed, as a wide step there and back."""
_LEAST_VARIANCE = 1e-6
"""Guard: least variance of the steps of a class, relative to that of all."""
_LEAST_SCALE = 1e-3
"""Guard: least squared step scale of an interval."""
_NONE = 1e-9
"""Guard: count that counts as zero."""


def maximised(movie: Movie, model: Model, posterior: LinkPosterior, fields: Fields | None) -> Model:
    """The model after one M-step; what varies in space stays if no fields are given."""
    motion = motion_step(movie, model.motion, posterior)
    scale, level = _step_scale(movie, model.motion, posterior)
    motion = replace(motion, variance=motion.variance * level, step_scale=scale)
    surroundings = model.surroundings if fields is None else _surroundings(movie, posterior, fields)
    return Model(motion, _association(movie, model, posterior, surroundings), surroundings)


def motion_step(movie: Movie, motion: MotionModel, posterior: LinkPosterior) -> MotionModel:
    """The motion after one M-step, with unchanged step scales."""
    assert posterior.moments is not None
    weight = over_one_interval(movie, posterior)
    return replace(
        _steps(motion, posterior.moments, weight), renewal=_renewal(motion, posterior, weight),
        noise=_noise(motion, posterior),
    )  # fmt: skip


def adapted(movie: Movie, model: Model, posterior: LinkPosterior, fields: Fields) -> Model:
    """The model with rates, flow and survival of this movie, and unchanged motion."""
    surroundings = _surroundings(movie, posterior, fields)
    return Model(model.motion, _association(movie, model, posterior, surroundings), surroundings)


def raw_steps(
    movie: Movie, posterior: LinkPosterior, workers: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N, D) mean displacement to the next frame, and (N,) the probability of one."""
    step, weight = np.empty_like(movie.position), np.empty(len(movie))

    def average(block: tuple[int, int]) -> None:
        links, probability = posterior.candidates[1:4], posterior.probability
        mean_steps(*block, movie.position, links, probability, _NONE, step, weight)

    in_blocks(average, len(movie), workers)
    return step, weight


def over_one_interval(movie: Movie, posterior: LinkPosterior) -> NDArray[np.float64]:
    """(E,) probabilities of links to the next frame, if it is one interval later; 0 for other links."""
    candidates = posterior.candidates
    once = (candidates.lag == 1) & (np.append(movie.intervals, 1)[movie.frame[candidates.tail]] == 1)
    return np.asarray(posterior.probability * once)


def _steps(motion: MotionModel, moments: Moments, weight: NDArray[np.float64]) -> MotionModel:
    """Variance, correlation and share of each class: Yule-Walker equations, reversible in time."""

    def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted(weight, values)

    count = total(moments.continued) + total(moments.renewed)
    late, early, fresh = map(total, (moments.square, moments.before_square, moments.fresh_square))
    both = (late + early) / 2
    variance = (fresh + both + PRIOR * motion.variance) / (count + PRIOR)[:, None]
    variance = np.maximum(variance, _LEAST_VARIANCE * (late + fresh).sum(axis=0) / max(count.sum(), _NONE))
    product = (total(moments.product) / variance).sum(axis=1)
    correlation = np.clip(product / ((both / variance).sum(axis=1) + PRIOR), *_CORRELATION)
    share = (count + PRIOR / len(count)) / (count.sum() + PRIOR)
    return replace(motion, variance=variance, correlation=correlation, share=share)


def _step_scale(
    movie: Movie, motion: MotionModel, posterior: LinkPosterior
) -> tuple[NDArray[np.float64], float]:
    """(F - 1,) scale of the steps to each next frame, and the mean square that belongs to the classes.

    A random-effects estimate, shrunk according to the sampling error (DerSimonian and Laird 1986). Over
    frames that were not recorded the scale is the usual one.
    """
    moments, intervals = posterior.moments, len(motion.step_scale)
    weight = over_one_interval(movie, posterior)
    assert moments is not None
    t = np.minimum(movie.frame[posterior.candidates.tail], intervals - 1)
    each_link = ((moments.square + moments.fresh_square) / motion.variance).sum(axis=(1, 2))
    square = motion.step_scale[t] ** 2 * each_link / movie.axes
    count = summed(t, weight, intervals) + _NONE
    each = summed(t, weight * square, intervals) / count
    level = float((count * each).sum() / count.sum())
    if not level > 0:
        return motion.step_scale, 1.0
    within = max(float((weight * (square - each[t]) ** 2).sum() / count.sum()), 1e-12)
    excess = max(float((count * (each - level) ** 2).sum()) / within - (intervals - 1), 0.0)
    between = excess * within / max(float(count.sum() - (count**2).sum() / count.sum()), _NONE)
    shrunk = level + between / (between + within / count) * (each - level)
    return np.sqrt(np.maximum(shrunk / level, _LEAST_SCALE)), level


def _renewal(
    motion: MotionModel, posterior: LinkPosterior, weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(K,) probability of renewal of each class; a class is entered as often as it is left.

    Only renewed steps whose tail has a predecessor are counted.
    """
    moments = posterior.moments
    assert moments is not None
    begins = posterior.fresh[posterior.candidates.tail]
    renews = (motion.entry / motion.share) * (motion.renewal @ motion.share) * (1 - begins)[:, None]
    entered = weighted(weight, moments.renewed * renews / np.maximum(begins[:, None] + renews, 1e-12))
    return (entered + PRIOR * _RENEWAL) / (entered + weighted(weight, moments.continued) + PRIOR)


def _noise(motion: MotionModel, posterior: LinkPosterior) -> NDArray[np.float64]:
    """(D,) variance of the localisation error."""
    assert posterior.moments is not None
    p = posterior.probability
    return (weighted(p, posterior.moments.residual) + PRIOR * motion.noise) / (p.sum() + PRIOR)


def _surroundings(movie: Movie, posterior: LinkPosterior, fields: Fields) -> Surroundings:
    """Flow and survival around each detection."""
    real = 1 - posterior.clutter
    sides = ((posterior.death, movie.left > 0), (posterior.birth, movie.frame > 0))
    after, before = (fields.survival(alone / np.maximum(real, _NONE), real * might) for alone, might in sides)
    return Surroundings(fields.flow(*raw_steps(movie, posterior, fields.workers)), after, before)


def _association(
    movie: Movie, model: Model, posterior: LinkPosterior, around: Surroundings
) -> AssociationModel:
    """Delays and clutter: one rate for the next frame, and one for later frames with geometric lags.

    Separate rates for all lags would be unstable with many lags and little evidence.
    """
    old, candidates = model.association, posterior.candidates
    lags = np.arange(old.longest - 1)
    links = summed(candidates.lag - 1, posterior.probability, old.longest)
    fall = (lags @ links[1:] + PRIOR * _FALL) / ((lags + 1) @ links[1:] + PRIOR)
    tail = fall**lags * float((candidates.lag > 1).any())
    real = 1 - posterior.clutter
    sides = ((old.delay, movie.left, around.survival), (old.delay_back, movie.frame, around.survival_back))
    delays = []
    for rate, reach, survival in sides:
        risk = np.array([(real * survival)[reach > lag].sum() for lag in range(old.longest)])
        one = (links[0] + PRIOR * rate[0]) / (risk[0] + PRIOR)
        at_risk = tail @ risk[1:] + PRIOR * tail.sum() + _NONE
        later = (links[1:].sum() + PRIOR * rate[1:].sum()) / at_risk
        delays.append(np.concatenate([[one], later * tail]))
    clutter = (posterior.clutter.sum() + PRIOR * _CLUTTER) / (len(movie) + PRIOR)
    return AssociationModel(delays[0], delays[1], float(clutter))
