"""Starts: coordinates, candidates and step scales from displacements alone, before the first sweep.

The scales are fitted to all pairs as a Poisson process: links plus a background of chance pairs with the
local density. No matching is used, because wrong links of a soft matching would increase the scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import kernels
from ...compute.tolerances import FEW, LEAST, NEGLIGIBLE, OPEN, PRIOR, ROUNDS, TINY
from ..inference.blocks import in_blocks
from ..inference.candidates import Candidates, Search, candidates_of, pairs_near
from ..inference.jpda import OMEGA, marginals, propagate
from ..inference.posterior import LinkPosterior
from ..model import AssociationModel, LocalFields, Model, MotionModel
from ..model.movie import Movie, movie_of
from .field import Fields
from .m_steps import CLUTTER, MISSED, raw_steps
from .options import LearnOptions
from .registration import NEAR, frame_shifts
from .sample import LAGS

_WHITENINGS = 2
"""Guard: rounds of whitening; a third changes no axis by 1 %."""
_ROUND = 0.8
"""Guard: ratio of the least to the largest variance of steps, from which one round is enough, if the flow it
finds is less than these."""
_SCALES = 11
"""Prior: step variances from 1 to 2^-10 squared spacings, each half of the previous one."""
_RENEWAL, _NOISE = 0.3, 0.05
"""Initial values of EM: probability of renewal, and noise relative to the median step variance."""
_CORRELATION = (0.3,), (0.1, 0.6)
"""Where EM starts: one class; or two, of which the slow one diffuses, and the fast one is directed."""
_DIRECTED = 0.95
"""Where EM starts: correlation of directed particles, and one minus their probability of renewal."""


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """Estimates from displacements alone.

    Parameters
    ----------
    posterior : LinkPosterior
        Marginals of the candidates to the next frame.
    share : (11,) float64 array
        Share of links by step variance: 1, 1/2, 1/4, … squared spacings.
    flow : (N, D) float64 array
        Step predicted by neighbours.
    """

    posterior: LinkPosterior
    share: NDArray[np.float64]
    flow: NDArray[np.float64]


def first_order(
    movie: Movie, candidates: Candidates, flow: NDArray[np.float64], fields: Fields
) -> FirstOrder:
    """Estimate shares of step scales, marginals and flow alternately.

    Candidates are pairs of detections in consecutive frames; the flow (N, D) is the initial one.
    """
    share, linked = np.full(_SCALES, 1 / _SCALES), 1 - MISSED
    posterior = LinkPosterior.unknown(candidates)
    at_risk = int((movie.left > 0).sum())
    square, ratio = np.empty_like(posterior.probability), np.empty_like(posterior.probability)
    link_weights = kernels("outbid.learned.learn.ladder", square).link_weights
    norm = (2 * np.pi * 0.5 ** np.arange(_SCALES)) ** (-movie.axes / 2)
    prior, count = 1 / movie.density[candidates.head], np.empty(_SCALES)
    every = 1 + candidates.size // LearnOptions.sample
    for _ in range(FEW):
        _measured(movie, candidates, flow, square)
        for _ in range(ROUNDS):
            link_weights(square, linked * prior, share * norm, every, count, ratio)
            share = (count + 1) / (count.sum() + _SCALES)
            linked = min((count.sum() + PRIOR * (1 - MISSED)) / (at_risk + PRIOR), 1 - OPEN)
        _write_ratios(square, linked * prior, share * norm, ratio)
        posterior = _propagated(movie, posterior, ratio, linked)
        last, flow = flow, fields.flow(*raw_steps(movie, posterior))
        if (flow == last).all():  # there is none
            break
    return FirstOrder(posterior, share, flow)


def _measured(
    movie: Movie, candidates: Candidates, flow: NDArray[np.float64], square: NDArray[np.float64]
) -> None:
    """Write the squared distances (E,) of heads from predicted positions of tails, by interval."""
    expected = movie.position + flow
    intervals = movie.of_frames(np.append(movie.intervals, 1.0)[: movie.frames])
    square_distances = kernels("outbid.learned.learn.ladder", square).square_distances

    def measure(block: tuple[int, int]) -> None:
        here = slice(*block)
        ends = candidates.tail[here], candidates.head[here]
        square_distances(movie.position, expected, intervals, *ends, square[here])

    in_blocks(measure, candidates.size, square)


def _write_ratios(
    square: NDArray[np.float64], prior: NDArray[np.float64], share: NDArray[np.float64],
    ratio: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the likelihood ratios (E,) of pairs under the ladder of scales."""
    link_weights = kernels("outbid.learned.learn.ladder", square).link_weights

    def write(block: tuple[int, int]) -> None:
        here = slice(*block)
        link_weights(square[here], prior[here], share, 1, np.empty(_SCALES), ratio[here])

    in_blocks(write, len(square), square)


def _propagated(
    movie: Movie, posterior: LinkPosterior, ratio: NDArray[np.float64], linked: float
) -> LinkPosterior:
    """The posterior from given likelihood ratios."""
    likely = ratio > NEGLIGIBLE
    some, places = posterior.candidates.kept(likely), np.flatnonzero(likely)
    own, competing = ratio[places], np.take(posterior.competing, places, axis=1)
    unlinked = np.where(movie.left == 0, 1.0, 1 - linked), np.where(movie.frame == 0, 1.0, 1 - linked)
    propagate(some, own, unlinked, competing, omega=OMEGA[1], rounds=FEW)
    probability, all_competing = np.zeros_like(ratio), posterior.competing.copy()
    probability[places] = marginals(own, competing, OMEGA[1])
    for side, values in zip(all_competing, competing, strict=True):
        side[places] = values
    return replace(posterior, probability=probability, competing=all_competing)


def whiten(
    position: NDArray[np.float64], frame_start: NDArray[np.int64], options: LearnOptions
) -> tuple[Movie, NDArray[np.float64]]:
    """The movie in the coordinates of the inference, and its flow.

    In these coordinates the steps without the flow are isotropic, the spacing is 1, and axes along which
    nothing varies are removed.
    """
    centred = position - position.mean(axis=0)
    _, extent, turn = np.linalg.svd(centred, full_matrices=False)
    basis = turn[extent >= LEAST * extent[0]].T if extent[0] > 0 else turn[:1].T
    movie = movie_of(centred @ basis, frame_start, basis=basis)
    shift = frame_shifts(movie.position, frame_start)
    flow = shift[movie.frame]
    for _ in range(_WHITENINGS):
        first = first_candidates(movie, flow, max(options.nearest // 2, 1))
        fields = Fields.of(movie)
        trial = first_order(movie, first, flow, fields)
        candidates, p = trial.posterior.candidates, trial.posterior.probability
        away = movie.position[candidates.head] - (movie.position + trial.flow)[candidates.tail]
        if not p.sum() > 0:
            continue
        spread = (away * p[:, None]).T @ away / p.sum()
        if options.least_step is not None:
            spread += (movie.basis.T * np.square(options.least_step)) @ movie.basis
        value, vector = np.linalg.eigh(spread)
        flowed = float(np.square(trial.flow - flow).sum(axis=1).mean())  # beyond what led to the candidates
        to = vector / np.sqrt(np.maximum(value, max(LEAST * value[-1], TINY**2)))
        basis = movie.basis @ to
        movie = movie_of(movie.position @ to, frame_start, basis=basis)
        flow = trial.flow @ to * (np.linalg.norm(movie.basis) / np.linalg.norm(basis))
        if value[0] > _ROUND * value[-1] and flowed < value.sum():
            break
    return without_jumps(movie, flow, np.abs(shift).max(axis=1) > 0)


def without_jumps(
    movie: Movie, flow: NDArray[np.float64], moved: NDArray[np.bool_]
) -> tuple[Movie, NDArray[np.float64]]:
    """Remove jumps of whole frames from the movie and the flow (N, D), which would mislead gap links.

    The motion common to all frames remains in the flow. `moved` (F,) are the frames that moved significantly.
    """
    mean = movie.mean_by_frame(flow)
    jump = mean - np.median(mean[:-1], axis=0) if movie.frames > 1 else 0 * mean
    jump[~moved | (np.linalg.norm(jump, axis=1) < NEAR)] = 0
    gone = np.cumsum(jump, axis=0) - jump
    shifted = movie.position - movie.of_frames(gone)
    return replace(movie, position=shifted), flow - movie.of_frames(jump)


def first_candidates(movie: Movie, flow: NDArray[np.float64], nearest: int) -> Candidates:
    """Candidates in consecutive frames near the positions predicted by the flow."""
    search = Search(1, nearest, movie.position + flow)
    return candidates_of(pairs_near(movie, search), movie.frame)


def narrow(posterior: LinkPosterior) -> LinkPosterior:
    """The candidates whose probability counts.

    The limit is that of each link, whatever the rest of the movie does: of links that hardly compete, one
    that is dropped would leave the other certain.
    """
    return posterior.kept(posterior.probability > NEGLIGIBLE)


def start_models(movie: Movie, first: FirstOrder, options: LearnOptions) -> list[Model]:
    """Where EM starts: one class that diffuses or is directed, or a slow and a fast one.

    In a crowd, EM from diffusion finds none of the others.
    """
    models = [_start_model(movie, first, correlation, options) for correlation in _CORRELATION]
    one = models[0]
    directed = replace(one.motion, correlation=np.array([_DIRECTED]), renewal=np.array([1 - _DIRECTED]))
    return [one, replace(one, motion=directed), *models[1:]]


def _start_model(
    movie: Movie, first: FirstOrder, correlation: tuple[float, ...], options: LearnOptions
) -> Model:
    """The first model of classes of these correlations, the slowest first."""
    many, classes = (first.share * 1000).astype(int)[::-1], len(correlation)
    steps = np.repeat(0.5 ** np.arange(_SCALES)[::-1], many)  # a sample of the ladder, ascending
    mean = np.array([part.mean() for part in np.array_split(steps, classes)])
    mean = np.maximum(mean, mean[0] * 4.0 ** np.arange(classes))
    one, axes = np.ones(classes), movie.axes
    noise = np.full(axes, _NOISE * float(np.median(steps)))
    motion = MotionModel(
        variance=np.repeat(mean[:, None], axes, axis=1), correlation=np.array(correlation),
        share=one / classes, renewal=_RENEWAL * one, noise=noise, step_scale=np.ones(len(movie.intervals)),
    )  # fmt: skip
    delay = np.concatenate([[1 - MISSED], np.zeros((options.longest_lag or LAGS) - 1)])
    association = AssociationModel(delay, delay.copy(), CLUTTER)
    return Model(motion, association, LocalFields.uniform(first.flow))
