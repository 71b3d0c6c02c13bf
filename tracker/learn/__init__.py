"""Learning: the model from the movie itself, by expectation and maximisation.

`options`        what decides how
`registration`   how far whole frames move, by cross-correlation
`starts`         coordinates, candidates and step scales from displacements alone
`field`          what varies in space: the step that neighbours share, survival
`m_steps`        one M-step a parameter group
`em`             sweeps and M-steps in turn; gaps
`fixed`          parameters that are given, not learned
`errors`         standard errors of those that are
`sample`         the part of a large movie from which its model is learned
`whole`          the whole of it, by that model

The door is `learn`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior import LinkPosterior
from ..model import Model
from ..model.movie import Movie
from .em import expecting_gaps, fit, with_gaps
from .field import Fields
from .options import LearnOptions
from .sample import sample_of
from .starts import (
    FirstOrder,
    first_candidates,
    first_order,
    narrowed,
    other_starts,
    split,
    start_model,
    whitened,
)
from .whole import spread


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from a movie.

    Parameters
    ----------
    movie : Movie
        In the coordinates in which inference works.
    model : Model
    posterior : LinkPosterior
    """

    movie: Movie
    model: Model
    posterior: LinkPosterior


def learn(
    position: NDArray[np.float64],
    frame_start: NDArray[np.int64],
    options: LearnOptions | None = None,
    *,
    time: NDArray[np.int64] | None = None,
) -> Learned:
    """Learn from a movie how its particles move and are seen, and the posterior over its links.

    Parameters
    ----------
    position : (N, A) float64 array
        In any unit.
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    options : LearnOptions, optional
    time : (F,) int64 array, optional
        When each frame was seen, in intervals, where some in between were not recorded: particles go the
        farther then, and are not missed. Default: one after another.

    Returns
    -------
    Learned

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walk = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> found = learn(walk.reshape(-1, 3), np.arange(13) * 200)
    >>> found.model.motion.classes, float(found.posterior.probability.sum().round(-2))
    (1, 2200.0)
    """
    options = options or LearnOptions()
    if len(position) <= options.sample:
        return Learned(*_fitted(position, frame_start, options, time))
    sample = sample_of(position, frame_start, options.sample)
    # Many short parallel loops cost more than they bring: the sample takes one thread a direction.
    few = replace(options, workers=min(options.workers, 2))
    when = None if time is None else time[sample.frames]
    movie, model, _ = _fitted(position[sample.rows], sample.frame_start, few, when)
    return Learned(*spread((position, frame_start, time), sample, (movie, model), options))


def _fitted(
    position: NDArray[np.float64],
    frame_start: NDArray[np.int64],
    options: LearnOptions,
    time: NDArray[np.int64] | None,
) -> tuple[Movie, Model, LinkPosterior]:
    """EM from the best start, and again with gaps."""
    movie, flow = options.fixed.turned(*whitened(position, frame_start, options))
    movie = replace(movie, time=time)
    fields = Fields.of(movie, workers=options.workers)
    candidates = first_candidates(movie, flow, options.nearest, options.workers)
    candidates = candidates.kept(options.fixed.reached(movie, flow, candidates))
    first = first_order(movie, candidates, flow, fields, options.workers)
    found = _best_start(movie, first, fields, options)
    start = found.posterior
    if options.gaps:
        model = options.fixed.held(movie, expecting_gaps(found.model))
        start = with_gaps(movie, model, found.posterior, options)
        found = _Fit(*fit(movie, model, start, fields, options.last_rounds, options))
    while found.model.motion.classes < max(options.classes):
        model = split(found.model)
        other = _Fit(*fit(movie, model, start, fields, options.last_rounds, options))
        if other.criterion <= found.criterion:
            break
        found = other
    return movie, found.model, found.posterior


@dataclass(frozen=True, eq=False)
class _Fit:
    """A model and its posterior."""

    model: Model
    posterior: LinkPosterior

    @property
    def criterion(self) -> float:
        """The Bayesian information criterion: log evidence less what its parameters cost."""
        motion, detections = self.model.motion, len(self.posterior.clutter)
        return self.posterior.log_evidence - 0.5 * motion.classes * (len(motion.noise) + 3) * np.log(
            detections
        )


def _best_start(movie: Movie, first: FirstOrder, fields: Fields, options: LearnOptions) -> _Fit:
    """The best of the starts with one class; then more classes while the criterion grows."""
    start = narrowed(first.posterior)

    def tried(model: Model, rounds: int) -> _Fit:
        return _Fit(*fit(movie, model, start, fields, rounds, options))

    one = start_model(movie, first, options.classes[0], options)
    starts = [tried(model, options.trial_rounds) for model in (one, *other_starts(one))]
    best = max(starts, key=lambda found: found.criterion)
    best = _Fit(*fit(movie, best.model, best.posterior, fields, options.first_rounds, options))
    for classes in options.classes[1:]:
        other = tried(start_model(movie, first, classes, options), options.first_rounds)
        if other.criterion < best.criterion:
            break
        best = other
    return best
