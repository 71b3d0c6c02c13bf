"""EM: alternating sweeps and M-steps; gaps are added after links to the next frame are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import NEGLIGIBLE, OPEN
from ..inference.candidates import Search, distinct, pairs_near
from ..inference.jpda import exponent, updated
from ..inference.posterior import LinkPosterior
from ..model import AssociationModel, Model
from ..model.advection import advected
from ..model.gate import predicted, reaches
from ..model.movie import Movie
from .field import Fields
from .m_steps import MISSED, m_step, over_one_interval
from .options import LearnOptions

_SETTLE = 2
"""Guard: sweeps with the last model, so that its evidence is computed from converged messages."""
LEAST_REACH = 2.5
"""Prior: least search radius in the next frame, in spacings: some steps are much longer than most."""


class Round(NamedTuple):
    """What a round of EM does beside a sweep and the M-step of motion and rates.

    fields: the flow and survival are renewed, and candidates dropped whose probability is below `dropped` of
    the options times `level`.
    """

    fields: bool = False
    level: float = 1.0


FIRST = Round(fields=True, level=0.01), Round(fields=True, level=0.1), Round(fields=True), Round()
_THEN = Round(), Round(fields=True), Round()
SCHEDULE = *FIRST, *_THEN
LAST = *SCHEDULE, *_THEN
"""The schedules of EM: by which starts are compared, then classes; and of links over missed frames."""


def fit(
    movie: Movie, model: Model, posterior: LinkPosterior, fields: Fields | None, options: LearnOptions,
    rounds: Sequence[Round],
) -> tuple[Model, LinkPosterior]:  # fmt: skip
    """EM on the host, until marginals converge; candidates with negligible marginals are dropped on the way.

    Without fields, which stay then, it takes all rounds. The evidence is not known yet; see `with_evidence`.
    """
    model = options.fixed.apply(movie, model)
    for turn, now in enumerate(rounds):
        omega = exponent(posterior.probability, 1.0)
        posterior = updated(movie, model, posterior, omega=omega)
        options.on_sweep(len(movie))
        if fields and turn >= len(FIRST) and posterior.change < NEGLIGIBLE:
            break
        model = m_step(movie, model, posterior, fields if now.fields else None)
        model = options.fixed.apply(movie, model)
        if now.fields:
            posterior = posterior.kept(posterior.probability > options.dropped * now.level)
    return model, posterior


def with_evidence(movie: Movie, model: Model, posterior: LinkPosterior) -> LinkPosterior:
    """The posterior with its evidence, of messages that have converged under this model."""
    last = posterior
    for _ in range(_SETTLE):
        last = updated(movie, model, last, with_moments=False)
    return replace(posterior, log_evidence=last.log_evidence)


def with_gaps(movie: Movie, model: Model, posterior: LinkPosterior, options: LearnOptions) -> LinkPosterior:
    """The posterior with candidates of every lag between detections without a certain link.

    Links over frames that were not recorded are searched once more: they were dropped before the persistence
    of steps was known.
    """
    after, earlier = (linked < 1 - OPEN for linked in posterior.degree_probability())
    longer = movie.intervals > 1
    after |= movie.of_frames(np.append(longer, False)[: movie.frames])
    earlier |= movie.of_frames(np.append(False, longer)[: movie.frames])
    tails, background = np.flatnonzero(after), OPEN * float(np.median(movie.density))
    keys = [movie.frame[:0]]
    ways = advected(movie, model.local.flow, tails, model.association.longest)
    step = _last_step(movie, model, posterior)
    for lag, way in enumerate(ways, 1):
        reach = reaches(movie, model.motion, lag, background)
        reach = np.maximum(reach, LEAST_REACH) if lag == 1 else reach
        if reach.any():
            expected = movie.position + predicted(movie, model.motion, lag, step)
            expected[tails] += way
            search = Search(lag, options.nearest, expected, tails=after, heads=earlier, radius=reach)
            keys.append(pairs_near(movie, search))
    posterior = posterior.kept(posterior.probability > options.dropped)
    posterior = posterior.with_pairs(distinct(keys), movie.frame)
    flow = model.local.flow
    posterior = posterior.kept(options.fixed.within_gate(movie, flow, posterior.candidates))
    omega = exponent(posterior.probability)
    return updated(movie, model, posterior, omega=omega, with_moments=False)


def _last_step(movie: Movie, model: Model, posterior: LinkPosterior) -> NDArray[np.float64]:
    """(N, D) expected displacement relative to the flow over the interval before; 0 if it is not known."""
    candidates = posterior.candidates
    p = posterior.probability * over_one_interval(movie, posterior)
    step = movie.position[candidates.head] - (movie.position + model.local.flow)[candidates.tail]
    return np.stack([candidates.at_heads(p * column) for column in step.T], axis=1)


def expecting_gaps(model: Model) -> Model:
    """The model under the assumption that half of the detections without a successor have a later one."""
    association = model.association
    fall = MISSED ** np.arange(1, association.longest)
    later = [
        np.concatenate([delay[:1], (1 - delay[0]) / 2 * fall / fall.sum()])
        for delay in (association.delay, association.delay_back)
    ]
    return replace(model, association=replace(association, delay=later[0], delay_back=later[1]))


def longer(association: AssociationModel, most: int) -> AssociationModel:
    """Delays up to the lag beyond which hardly a link is expected, if each missed frame is as likely.

    No lag is above `most`.

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
    fall = min(float(delay[-1] / delay[-2]), 1 - NEGLIGIBLE)
    beyond = float(delay[-1]) * fall / (1 - fall) / max(float(delay.sum()), NEGLIGIBLE)
    more = int(np.ceil(np.log(max(beyond, NEGLIGIBLE) / NEGLIGIBLE) / -np.log(fall)))
    more = max(min(more, lags, most - lags), 0)  # no farther beyond than was seen
    tail = fall ** np.arange(1, more + 1)
    ahead, back = (np.append(each, each[-1] * tail) for each in (association.delay, association.delay_back))
    return replace(association, delay=ahead, delay_back=back)
