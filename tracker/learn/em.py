"""EM: sweeps and M-steps in turn, and gaps once the next frames are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..inference.candidates import Candidates, Search, distinct, pairs_near
from ..inference.jpda import by_either
from ..inference.posterior import LinkPosterior, swept
from ..model import Model
from ..model.gate import radius
from ..model.movie import Movie
from .field import Fields
from .m_steps import maximised
from .options import LearnOptions

_FEWEST = 5
"""Guard: rounds before EM may stop."""
_SETTLE = 2
"""Guard: sweeps under the last model, so that its evidence is that of settled messages."""
_AITKEN = 0.85
"""Guard: largest ratio of successive changes that is extrapolated."""
_OPEN = 0.02
"""Error level: detections surer than this of a link get no further candidates."""
_WORTH = 0.5
"""Error level: likelihood, in that of chance, below which a gap is not bridged."""
_CHANCE = 0.02
"""Prior: odds of a link over a gap against chance, from which its gate is computed."""
_LEAST_REACH = 2.5
"""Prior: spacings within which the next frame is searched at least: some steps are far longer than most."""
_MISSED = 0.2
"""Prior: probability of one more missed frame, with which the search for gaps begins."""


def fit(
    movie: Movie, model: Model, posterior: LinkPosterior, fields: Fields, rounds: int, options: LearnOptions
) -> tuple[Model, LinkPosterior]:
    """EM until the marginals stay; candidates whose marginal has become negligible are dropped on the way."""
    noises, model = [], options.fixed.held(movie, model)
    for turn in range(rounds):
        posterior = swept(movie, model, posterior, workers=options.workers)
        if turn >= _FEWEST and posterior.change < options.still:
            break
        model = options.fixed.held(movie, maximised(movie, model, posterior, fields))
        noises.append(np.log(model.motion.noise))
        if turn < 2 or turn % 3 == 2:
            posterior = posterior.kept(posterior.probability > options.dropped * 0.1 ** max(2 - turn, 0))
        if turn % 3 == 2 and turn > 3:  # EM creeps along the ridge of noise against steps: extrapolate
            last, before = noises[-1] - noises[-2], noises[-2] - noises[-3]
            ratio = np.clip(last / np.where(before == 0, 1, before), 0, _AITKEN)
            noise = np.exp(noises[-1] + last * ratio / (1 - ratio))
            model = replace(model, motion=replace(model.motion, noise=noise))
            model = options.fixed.held(movie, model)
    for left in reversed(range(_SETTLE)):
        posterior = swept(movie, model, posterior, with_moments=left == 0, workers=options.workers)
    return model, posterior


def with_gaps(movie: Movie, model: Model, posterior: LinkPosterior, options: LearnOptions) -> LinkPosterior:
    """The posterior with candidates of every lag between detections that are not surely linked.

    Those over missed frames stay only where the link explains the detection better than chance would.
    """
    after, before = posterior.linked(len(movie))
    keys = [np.empty(0, np.int64)]
    for lag in range(1, model.association.longest + 1):
        reach = radius(model.motion, lag, _CHANCE * float(np.median(movie.density)))
        reach = max(reach, _LEAST_REACH) if lag == 1 else reach
        if reach > 0:
            search = Search(
                lag, options.nearest, movie.position + lag * model.surroundings.flow,
                after < 1 - _OPEN, before < 1 - _OPEN, reach,
            )  # fmt: skip
            keys.append(pairs_near(movie, search, workers=options.workers))
    posterior = posterior.kept(posterior.probability > options.dropped)
    posterior = posterior.with_pairs(distinct(keys), movie.frame)
    flow = model.surroundings.flow
    posterior = posterior.kept(options.fixed.reached(movie, flow, posterior.candidates))
    either = by_either(movie, model, posterior.candidates, posterior.rivals, workers=options.workers)
    posterior = posterior.kept(_explaining(model, posterior.candidates, either, 1e-2 * options.dropped))
    posterior = swept(movie, model, posterior, with_moments=False, workers=options.workers)
    either = np.maximum(posterior.past, posterior.future)
    return posterior.kept(_explaining(model, posterior.candidates, either, 0.0))


def _explaining(
    model: Model, candidates: Candidates, either: NDArray[np.float64], least: float
) -> NDArray[np.bool_]:
    """(E,) whether links over gaps explain the detection better than chance, and others at least so much."""
    over_gap = candidates.lag > 1
    worth = _WORTH * model.association.delay[candidates.lag - 1]
    return np.asarray(either > np.where(over_gap, worth, least))


def expecting_gaps(model: Model) -> Model:
    """The model, as if half of the detections without a successor in the next frame had one later."""
    association = model.association
    fall = _MISSED ** np.arange(1, association.longest)
    later = [
        np.concatenate([delay[:1], 2 * (1 - delay[0]) * fall])
        for delay in (association.delay, association.delay_back)
    ]
    return replace(model, association=replace(association, delay=later[0], delay_back=later[1]))
