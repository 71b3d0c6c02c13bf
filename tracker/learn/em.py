"""EM: alternating sweeps and M-steps; gaps are added after links to the next frame are known."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.candidates import Candidates, Search, distinct, pairs_near
from ..inference.jpda import exponent
from ..inference.posterior import LinkPosterior, swept
from ..model import AssociationModel, Model
from ..model.advection import advected
from ..model.gate import CHANCE, predicted, reaches
from ..model.movie import Movie, summed
from .field import Fields
from .m_steps import maximised, over_one_interval
from .options import LearnOptions

_FEWEST = 5
"""Guard: least number of rounds of EM."""
_SETTLE = 2
"""Guard: sweeps with the last model, so that its evidence is computed from converged messages."""
_AITKEN = 0.85
"""Guard: largest ratio of successive changes that is extrapolated."""
_OPEN = 0.02
"""Error level: probability of a link above which a detection gets no further candidates."""
_WORTH = 0.1
"""Error level: likelihood ratio against chance below which a gap is not bridged."""
_CHANCE = 0.02
"""Prior: odds of a gap link against chance, from which its gate is computed."""
_LEAST_REACH = 2.5
"""Prior: least search radius in the next frame, in spacings: some steps are much longer than most."""
_MISSED = 0.2
"""Prior: initial probability of one more missed frame in the search for gaps."""


class Round(NamedTuple):
    """What a round of EM does beside a sweep and the M-step of motion and rates.

    fields: the flow and survival are renewed, and candidates dropped whose probability is below `dropped` of
    the options times `level`; extrapolates: along the ridge of noise against steps, on which EM creeps.
    """

    fields: bool = False
    level: float = 1.0
    extrapolates: bool = False


_FIRST = Round(fields=True, level=0.01), Round(fields=True, level=0.1), Round(fields=True)
_THEN = Round(), Round(), Round(fields=True, extrapolates=True)
"""The schedule of EM: the first three rounds, and those that are repeated afterwards."""


def fit(
    movie: Movie, model: Model, posterior: LinkPosterior, fields: Fields, rounds: int, options: LearnOptions
) -> tuple[Model, LinkPosterior]:
    """EM until the marginals converge; candidates with negligible marginals are dropped on the way.

    The evidence is not known yet; see `with_evidence`.
    """
    noises, model = [], options.fixed.held(movie, model)
    for turn, now in zip(range(rounds), chain(_FIRST, cycle(_THEN)), strict=False):
        posterior = swept(
            movie, model, posterior, omega=exponent(posterior.probability, 1.0), workers=options.workers
        )
        options.on_sweep(len(movie))
        if turn >= _FEWEST and posterior.change < options.still:
            break
        model = maximised(movie, model, posterior, fields if now.fields else None)
        model = options.fixed.held(movie, model)
        noises.append(np.log(model.motion.noise))
        if now.fields:
            posterior = posterior.kept(posterior.probability > options.dropped * now.level)
        if now.extrapolates:
            last, before = noises[-1] - noises[-2], noises[-2] - noises[-3]
            ratio = np.clip(last / np.where(before == 0, 1, before), 0, _AITKEN)
            noise = np.exp(noises[-1] + last * ratio / (1 - ratio))
            model = replace(model, motion=replace(model.motion, noise=noise))
            model = options.fixed.held(movie, model)
    return model, posterior


def with_evidence(movie: Movie, model: Model, posterior: LinkPosterior, workers: int) -> LinkPosterior:
    """The posterior with its evidence, of messages that have converged under this model."""
    last = posterior
    for _ in range(_SETTLE):
        last = swept(movie, model, last, with_moments=False, workers=workers)
    return replace(posterior, log_evidence=last.log_evidence)


def with_gaps(movie: Movie, model: Model, posterior: LinkPosterior, options: LearnOptions) -> LinkPosterior:
    """The posterior with candidates of every lag between detections without a certain link.

    Links over frames that were not recorded are searched once more: they were dropped before the persistence
    of steps was known.
    Candidates over missed frames are kept only if the link explains the detection better than chance.
    """
    after, before = (linked < 1 - _OPEN for linked in posterior.linked(len(movie)))
    longer = movie.intervals > 1
    after |= np.append(longer, False)[movie.frame]
    before |= np.append(False, longer)[movie.frame]
    keys, tails, chance = [np.empty(0, np.int64)], np.flatnonzero(after), _CHANCE * np.median(movie.density)
    ways = advected(movie, model.surroundings.flow, tails, model.association.longest, workers=options.workers)
    step = _last_step(movie, model, posterior)
    for lag, way in enumerate(ways, 1):
        reach = reaches(movie, model.motion, lag, float(chance))
        reach = np.maximum(reach, _LEAST_REACH) if lag == 1 else reach
        if reach.any():
            expected = movie.position + predicted(movie, model.motion, lag, step)
            expected[tails] += way
            search = Search(lag, options.nearest, expected, after, before, reach)
            keys.append(pairs_near(movie, search, workers=options.workers))
    posterior = posterior.kept(posterior.probability > options.dropped)
    posterior = posterior.with_pairs(distinct(keys), movie.frame)
    flow = model.surroundings.flow
    posterior = posterior.kept(options.fixed.reached(movie, flow, posterior.candidates))
    posterior = swept(
        movie,
        model,
        posterior,
        omega=exponent(posterior.probability),
        with_moments=False,
        workers=options.workers,
    )
    either = np.maximum(posterior.past, posterior.future)
    return posterior.kept(_explaining(model, posterior.candidates, either))


def _last_step(movie: Movie, model: Model, posterior: LinkPosterior) -> NDArray[np.float64]:
    """(N, D) expected displacement beside the flow over the interval before; 0 as far as it is not known."""
    candidates = posterior.candidates
    p = posterior.probability * over_one_interval(movie, posterior)
    step = movie.position[candidates.head] - (movie.position + model.surroundings.flow)[candidates.tail]
    return np.stack([summed(candidates.head, p * column, len(movie)) for column in step.T], axis=1)


def _explaining(model: Model, candidates: Candidates, either: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(E,) whether links over gaps explain the detection better than chance; all others stay."""
    worth = _WORTH * model.association.delay[candidates.lag - 1]
    return np.asarray((candidates.lag == 1) | (either > worth))


def expecting_gaps(model: Model) -> Model:
    """The model under the assumption that half of the detections without a successor have a later one."""
    association = model.association
    fall = _MISSED ** np.arange(1, association.longest)
    later = [
        np.concatenate([delay[:1], (1 - delay[0]) / 2 * fall / fall.sum()])
        for delay in (association.delay, association.delay_back)
    ]
    return replace(model, association=replace(association, delay=later[0], delay_back=later[1]))


def longer(association: AssociationModel, most: int) -> AssociationModel:
    """Delays up to the lag beyond which hardly a link is expected, if each missed frame is as likely.

    Parameters
    ----------
    association : AssociationModel
    most : int
        Largest lag.

    Examples
    --------
    >>> delay = 0.6 * 0.4 ** np.arange(6)
    >>> longer(AssociationModel(delay, delay, 0.0), 18).longest
    8
    >>> longer(AssociationModel(delay[:5], delay[:5], 0.0), 6).longest
    6
    """
    delay, lags = association.delay, association.longest
    if lags < 3 or not delay[-1] > 0:
        return association
    fall = min(float(delay[-1] / delay[-2]), 1 - CHANCE)
    beyond = float(delay[-1]) * fall / (1 - fall) / max(float(delay.sum()), CHANCE)
    more = int(np.ceil(np.log(max(beyond, CHANCE) / CHANCE) / -np.log(fall)))
    more = max(min(more, lags, most - lags), 0)  # no farther beyond than was seen
    tail = fall ** np.arange(1, more + 1)
    ahead, back = (np.append(each, each[-1] * tail) for each in (association.delay, association.delay_back))
    return replace(association, delay=ahead, delay_back=back)
