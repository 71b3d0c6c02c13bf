"""Learning: estimate the model from the movie itself, by expectation-maximisation.

`options`        settings
`registration`   motion of whole frames, by cross-correlation
`starts`         coordinates, candidates and step scales from displacements alone
`field`          quantities that vary in space: common step of neighbours, survival
`m_steps`        one M-step for each parameter group; noise and steps from lagged covariances
`features`          M-steps of columns
`em`             alternating sweeps and M-steps; gaps
`fixed`          parameters that are given, not learned
`errors`         standard errors of learned parameters
`sample`         the part of a large movie from which its model is learned
`whole`          the whole movie, with that model
`pinned`         the posterior under the model and pins

The entry point is `learn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import rows_here, to_host
from ...compute.threads import computing
from ...compute.timing import lap
from ...compute.tolerances import NEGLIGIBLE
from ..inference.jpda import converged
from ..inference.posterior import LinkPosterior
from ..model import FeatureModel, LocalFields, Model
from ..model.features import Features
from ..model.movie import Movie
from . import em
from .features import feature_step
from .field import Fields
from .m_steps import by_moments
from .options import LearnOptions
from .sample import part_of, sample_of
from .starts import FirstOrder, first_candidates, first_order, narrow, start_models, whiten
from .whole import extend_to_movie


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of learning from a movie.

    Parameters
    ----------
    movie : Movie
        In the coordinates of the inference.
    model : Model
    posterior : LinkPosterior
    sample : Fit, optional
        The part of a large movie from which its motion was learned.
    """

    movie: Movie
    model: Model
    posterior: LinkPosterior
    sample: Fit | None = None

    @property
    def motion_from(self) -> Fit:
        """What the motion was learned from: the sample of a large movie, or the movie itself."""
        return self.sample or self


Learned = Fit
"""The former name, for one release."""


def learn(
    position: NDArray[np.float64],
    frame_start: NDArray[np.int64],
    options: LearnOptions | None = None,
    *,
    time: NDArray[np.int64] | None = None,
    features: Features | None = None,
) -> Fit:
    """Learn motion and detection of particles from a movie, and the posterior over its links.

    Parameters
    ----------
    position : (N, A) float64 array
        In any unit; on the host, or on a GPU that the options name.
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    options : LearnOptions, optional
    time : (F,) int64 array, optional
        Time of each frame in intervals, if some frames were not recorded: particles then move farther, but do
        not count as missed. Default: consecutive frames.
    features : Features, optional
        Columns of the detections that help to link.

    Returns
    -------
    Fit
        On the device of the options if the movie is larger than the sample, else on the host.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walk = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> found = learn(walk.reshape(-1, 3), np.arange(13) * 200)
    >>> found.model.motion.classes, float(found.posterior.probability.sum().round(-2))
    (1, 2200.0)
    """
    options = options or LearnOptions()
    with computing(options.workers):
        if options.whole(len(position)):
            return Fit(*_fitted(to_host(position), frame_start, options, (time, features)))
        sample = sample_of(position, frame_start, options.sample)
        when = None if time is None else time[sample.frames]
        some = None if features is None else features.take("row", sample.rows)
        there = rows_here(position, sample.rows)
        # Many short parallel loops cost more than they bring, and so do launches: one thread a direction.
        with computing(min(options.workers, 2)):
            part = Fit(*_fitted(there, sample.frame_start, options, (when, some)))
        lap("the model of a sample")
        whole = extend_to_movie(
            (position, frame_start, time), sample, (part.movie, part.model), options, features
        )
        return Fit(*whole, part)


def _fitted(
    position: NDArray[np.float64],
    frame_start: NDArray[np.int64],
    options: LearnOptions,
    beside: tuple[NDArray[np.int64] | None, Features | None],
) -> tuple[Movie, Model, LinkPosterior]:
    """EM from the best initial values, again with gaps, and with features. beside: time and features."""
    movie, flow = options.fixed.rotated(*whiten(position, frame_start, options))
    movie = replace(movie, time=beside[0], features=beside[1])
    fits = _Trials(movie, Fields.of(movie), options)
    candidates = first_candidates(movie, flow, options.nearest)
    candidates = candidates.kept(options.fixed.within_gate(movie, flow, candidates))
    now = fits.started(first_order(movie, candidates, flow, fits.fields))
    start = now.posterior
    if options.gaps:
        model = options.fixed.apply(movie, em.expecting_gaps(now.model))
        start = em.with_gaps(movie, model, now.posterior, options)
        now, start = fits.with_longer_gaps(fits.after(model, start, em.LAST), start)
    now = fits.with_features(now, start)
    return movie, now.model, converged(movie, now.model, now.posterior, still=NEGLIGIBLE)


@dataclass(frozen=True, eq=False)
class _Trial:
    """A model and its posterior."""

    model: Model
    posterior: LinkPosterior

    @property
    def criterion(self) -> float:
        """The Bayesian information criterion: log evidence minus the penalty for parameters."""
        motion, detections = self.model.motion, len(self.model.local.survival)
        many = motion.classes * (len(motion.noise) + 3)
        many += 0 if self.model.features is None else self.model.features.parameters()
        return self.posterior.log_evidence - 0.5 * many * np.log(detections)


@dataclass(frozen=True, eq=False)
class _Trials:
    """EM over a movie, from models and candidates that compete."""

    movie: Movie
    fields: Fields
    options: LearnOptions

    def after(self, model: Model, start: LinkPosterior, rounds: Sequence[em.Round] = em.SCHEDULE) -> _Trial:
        """The fit after EM from a model and candidates; without evidence."""
        return _Trial(*em.fit(self.movie, model, start, self.fields, self.options, rounds))

    def evaluate(self, now: _Trial) -> _Trial:
        """The fit with its evidence."""
        posterior = em.with_evidence(self.movie, now.model, now.posterior)
        return replace(now, posterior=posterior)

    def better(self, now: _Trial, model: Model, start: LinkPosterior) -> _Trial | None:
        """The fit from another model, if the criterion grows."""
        other = self.evaluate(self.after(model, start, em.LAST))
        return other if other.criterion > now.criterion else None

    def started(self, first: FirstOrder) -> _Trial:
        """A few rounds of EM over the movie, from what was found over a part of it.

        The last model of the part has little noise. Before links are known it misleads EM, so the model
        of the best start comes first.
        """
        movie = self.movie
        part, links, sample = part_of(movie, first.posterior, self.options.trial)
        if len(part) == len(movie):
            return self.best_start(first)[-1]
        fits = _Trials(part, Fields.of(part), self.options)
        best = fits.best_start(FirstOrder(links, first.share, first.flow[sample.rows]))
        scale, around = np.ones(len(movie.intervals)), LocalFields.uniform(first.flow)
        now = _Trial(best[0].model, narrow(first.posterior))
        for learned in (one.model for one in best):
            motion = replace(learned.motion, step_scale=scale)
            model = replace(learned, motion=motion, local=around)
            now = self.after(model, now.posterior, em.FIRST[:2])
            scale, around = now.model.motion.step_scale, now.model.local
        return now

    def best_start(self, first: FirstOrder) -> tuple[_Trial, _Trial]:
        """The best of the starts; and what it comes to with the noise of its displacements."""
        start = narrow(first.posterior)
        models = start_models(self.movie, first, self.options)
        starts = [self.evaluate(self.after(model, start, em.FIRST)) for model in models]
        best = max(starts, key=lambda now: now.criterion)
        return best, self.after(by_moments(self.movie, best.model, best.posterior), best.posterior)

    def with_features(self, now: _Trial, start: LinkPosterior) -> _Trial:
        """The fit in which links are compared by features too, if tracks keep any and the criterion grows.

        Odds of clutter by columns come first and are held: otherwise dim false spots confirm each other, as
        tracks of what is alike.
        """
        opened = replace(now.model.features or FeatureModel(), opened=True)
        features = feature_step(self.movie, opened, now.posterior)
        if features is None or not features.links():
            return now
        now = self.evaluate(now)
        return self.better(now, replace(now.model, features=features), start) or now

    def with_longer_gaps(self, now: _Trial, start: LinkPosterior) -> tuple[_Trial, LinkPosterior]:
        """The fit with links over longer gaps and its candidates, while such links are expected.

        They are kept only if the criterion grows: in a crowd chance links seem to be over gaps of any length.
        """
        while self.options.longest_lag is None:
            model = replace(now.model, association=em.longer(now.model.association, self.movie.frames - 1))
            if model.association.longest == now.model.association.longest:
                break
            now = self.evaluate(now)
            candidates = em.with_gaps(self.movie, model, now.posterior, self.options)
            other = self.better(now, model, candidates)
            if other is None:
                break
            now, start = other, candidates
        return now, start
