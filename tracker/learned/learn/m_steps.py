"""M-steps: one function for each parameter group, from the expected statistics of a posterior."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import kernels, to_host
from ...compute.tolerances import LEAST, NEGLIGIBLE, PRIOR, TINY
from ..inference.blocks import in_blocks
from ..inference.posterior import LinkPosterior
from ..model import AssociationModel, LocalFields, Model, MotionModel
from ..model.motion import CORRELATION
from ..model.movie import Movie, summed, weighted
from .features import feature_step
from .field import Fields
from .m_steps_cpu import add_moments

RENEWAL, CLUTTER, MISSED = 0.1, 0.01, 0.1
"""Prior: probability of renewal, of clutter, and of one more missed frame."""


def m_step(movie: Movie, model: Model, posterior: LinkPosterior, fields: Fields | None) -> Model:
    """The model after one M-step; what varies in space stays if no fields are given."""
    stats = sums_of(movie, model.motion, posterior, np.zeros_like(movie.frame), 1)
    motion, (scale, level) = _motion(model.motion, stats), _step_scale(model.motion, stats)
    motion = replace(motion, variance=motion.variance * level, step_scale=scale)
    local = model.local if fields is None else _local_fields(movie, posterior, fields)
    rates = _association(movie, model, posterior, local)
    return Model(motion, rates, local, feature_step(movie, model.features, posterior))


class Sums(NamedTuple):
    """Expected statistics of steps, by group of links: `Moments` times probability, summed.

    steps (G, K, 3): steps that continue, are renewed, and are renewed after a predecessor; sums
    (G, K, D, 4); residual (G, D); links (G,); by_interval (T, 3): number, sum and sum of squares of squared
    steps over their variance.
    """

    steps: NDArray[np.float64]
    sums: NDArray[np.float64]
    residual: NDArray[np.float64]
    links: NDArray[np.float64]
    by_interval: NDArray[np.float64]


def sums_of(
    movie: Movie, motion: MotionModel, posterior: LinkPosterior, group: NDArray[np.int64], groups: int
) -> Sums:
    """Sums of the moments of a posterior, by group (N,) of tails."""
    (classes, axes), intervals = motion.variance.shape, len(motion.step_scale)
    shapes = (groups, classes, 3), (groups, classes, axes, 4), (groups, axes), (groups,), (intervals, 3)
    stats = Sums(*(np.zeros(shape) for shape in shapes))
    renews = (motion.entry / motion.share) * float(weighted(motion.renewal, motion.share))
    once, tail = over_one_interval(movie, posterior), posterior.candidates.tail
    interval, inverse = np.minimum(movie.frame, intervals - 1), 1 / (motion.variance * movie.axes)
    assert posterior.moments is not None
    add_moments(
        tuple(posterior.moments), posterior.probability, once, tail, group, posterior.birth_forward, renews,
        interval, inverse, tuple(stats),
    )  # fmt: skip
    return stats


def _motion(motion: MotionModel, stats: Sums) -> MotionModel:
    """Variance, correlation and share of each class by Yule-Walker equations, reversible in time; and noise.

    A class is entered as often as it is left: only renewed steps whose tail has a predecessor count.
    """
    continued, renewed, entered = stats.steps[0].T
    late, fresh, product, early = np.moveaxis(stats.sums[0], 2, 0)
    count, both = continued + renewed, (late + early) / 2
    variance = (fresh + both + PRIOR * motion.variance) / (count + PRIOR)[:, None]
    variance = np.maximum(variance, LEAST * (late + fresh).sum(axis=0) / max(count.sum(), TINY))
    product = (product / variance).sum(axis=1)
    return replace(
        motion, variance=variance,
        correlation=np.clip(product / ((both / variance).sum(axis=1) + PRIOR), *CORRELATION),
        share=(count + PRIOR / len(count)) / (count.sum() + PRIOR),
        renewal=(entered + PRIOR * RENEWAL) / (entered + continued + PRIOR),
        noise=(stats.residual[0] + PRIOR * motion.noise) / (stats.links[0] + PRIOR),
    )  # fmt: skip


def adapt(movie: Movie, model: Model, posterior: LinkPosterior, fields: Fields) -> Model:
    """The model with rates, flow and survival of this movie, and unchanged motion."""
    local = _local_fields(movie, posterior, fields)
    rates = _association(movie, model, posterior, local)
    return replace(model, association=rates, local=local)


def raw_steps(movie: Movie, posterior: LinkPosterior) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N, D) mean displacement to the next frame, and (N,) the probability of one."""
    step, weight = np.empty_like(movie.position), np.empty_like(posterior.probability, shape=len(movie))
    mean_steps = kernels("outbid.learned.learn.field", step).mean_steps

    def average(block: tuple[int, int]) -> None:
        links, probability = posterior.candidates[1:4], posterior.probability
        mean_steps(*block, movie.position, links, probability, TINY, step, weight)

    in_blocks(average, len(movie), step)
    return step, weight


def over_one_interval(movie: Movie, posterior: LinkPosterior) -> NDArray[np.bool_]:
    """(E,) whether links are to the next frame, and that is one interval later."""
    candidates, once = posterior.candidates, posterior.candidates.lag == 1
    if movie.time is not None:
        once &= movie.of_frames(np.append(movie.intervals, 1)[: movie.frames] == 1)[candidates.tail]
    return once


def _step_scale(motion: MotionModel, stats: Sums) -> tuple[NDArray[np.float64], float]:
    """(F - 1,) scale of the steps to each next frame, and the mean square that belongs to the classes.

    A random-effects estimate, shrunk according to the sampling error (DerSimonian and Laird 1986). Over
    frames that were not recorded the scale is the usual one.
    """
    scale, intervals = motion.step_scale, len(motion.step_scale)
    count, total, squares = (stats.by_interval * scale[:, None] ** np.array([0, 2, 4])).T
    count = count + TINY
    each = total / count
    level = float((count * each).sum() / count.sum())
    if not level > 0:
        return motion.step_scale, 1.0
    within = max(float((squares - each * total).sum() / count.sum()), TINY)
    excess = max(float((count * (each - level) ** 2).sum()) / within - (intervals - 1), 0.0)
    between = excess * within / max(float(count.sum() - (count**2).sum() / count.sum()), TINY)
    shrunk = level + between / (between + within / count) * (each - level)
    return np.sqrt(np.maximum(shrunk / level, NEGLIGIBLE)), level


def _local_fields(movie: Movie, posterior: LinkPosterior, fields: Fields) -> LocalFields:
    """Flow and survival around each detection."""
    real = 1 - posterior.clutter
    sides = ((posterior.death, movie.left > 0), (posterior.birth, movie.frame > 0))
    after, back = (fields.survival(ended / np.maximum(real, TINY), real * might) for ended, might in sides)
    return LocalFields(fields.flow(*raw_steps(movie, posterior)), after, back)


def _association(
    movie: Movie, model: Model, posterior: LinkPosterior, around: LocalFields
) -> AssociationModel:
    """Delays and clutter: one rate for the next frame, and one for later frames with geometric lags.

    Separate rates for all lags would be unstable with many lags and little evidence.
    """
    old, candidates = model.association, posterior.candidates
    lags = np.arange(old.longest - 1)
    links = to_host(summed(candidates.lag - 1, posterior.probability, old.longest))
    fall = (lags @ links[1:] + PRIOR * MISSED) / ((lags + 1) @ links[1:] + PRIOR)
    tail = fall**lags * float((candidates.lag > 1).any())
    real = 1 - posterior.clutter
    sides = ((old.delay, movie.left, around.survival), (old.delay_back, movie.frame, around.survival_back))
    delays = []
    for rate, reach, survival in sides:
        risk = np.array([float((real * survival)[reach > lag].sum()) for lag in range(old.longest)])
        one = (links[0] + PRIOR * rate[0]) / (risk[0] + PRIOR)
        at_risk = tail @ risk[1:] + PRIOR * tail.sum() + TINY
        later = (links[1:].sum() + PRIOR * rate[1:].sum()) / at_risk
        delays.append(np.concatenate([[one], later * tail]))
    clutter = (float(posterior.clutter.sum()) + PRIOR * CLUTTER) / (len(movie) + PRIOR)
    return AssociationModel(delays[0], delays[1], float(clutter))


def by_moments(movie: Movie, model: Model, posterior: LinkPosterior) -> Model:
    """The model with the noise, and the size of the steps along each axis, of the displacements of its links.

    EM creeps where noise and steps explain each other; moments do not, but they need the links first.
    With steps of variance V whose correlation is k, k^2, … and noise r, displacements d have

        E[d d] = V + 2 r,  E[d d'] = k V - r,  E[d d''] = k^2 V.
    """
    now, next_one, after = _covariances(movie, model, posterior)
    if not (now > 0).all():
        return model
    both, last = float((now + 2 * next_one).sum()), max(float(after.sum()), 0.0)
    # k^2 both = (1 + 2 k) last, over all axes
    kept = min((last + np.sqrt(last * (last + both))) / both, CORRELATION[1]) if both > 0 else 0.0
    noise = np.maximum((kept * now - next_one) / (1 + 2 * kept), NEGLIGIBLE * now)
    noise = np.minimum(noise, (1 - NEGLIGIBLE) / 2 * now)
    motion = model.motion
    size = (now - 2 * noise) / weighted(motion.share, motion.variance)
    return replace(model, motion=replace(motion, noise=noise, variance=motion.variance * size))


def _covariances(movie: Movie, model: Model, posterior: LinkPosterior) -> list[NDArray[np.float64]]:
    """(D,) covariances of displacements relative to the flow with themselves, the next and the one after."""
    candidates = posterior.candidates
    tail, head, count = candidates.tail, candidates.head, len(movie)
    p = posterior.probability * over_one_interval(movie, posterior)
    away = movie.position[head] - movie.position[tail] - model.local.flow[tail]
    weight = np.column_stack([np.ones(len(p)), away])
    later, earlier = (
        np.stack([summed(end, p * column, count) for column in weight.T], axis=1) for end in (tail, head)
    )
    products = (
        weighted(p, np.square(weight)),
        (earlier * later).sum(axis=0),
        weighted(p, earlier[tail] * later[head]),
    )
    return [product[1:] / max(float(product[0]), TINY) for product in products]
