"""Learning: the model from the movie itself, by expectation and maximisation.

`options`        what decides how
`registration`   how far whole frames move, by cross-correlation
`starts`         coordinates, candidates and step scales from displacements alone
`field`          what varies in space: the step that neighbours share, survival
`m_steps`        one M-step a parameter group
`em`             sweeps and M-steps in turn; gaps

The door is `learn`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior import LinkPosterior
from ..model import Model
from ..model.movie import Movie
from .em import fit, with_gaps
from .field import Fields
from .options import LearnOptions
from .starts import FirstOrder, first_candidates, first_order, narrowed, start_model, whitened


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
    position: NDArray[np.float64], frame_start: NDArray[np.int64], options: LearnOptions | None = None
) -> Learned:
    """Learn from a movie how its particles move and are seen, and the posterior over its links.

    Parameters
    ----------
    position : (N, A) float64 array
        In any unit.
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    options : LearnOptions, optional

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
    movie, flow = whitened(position, frame_start, options)
    fields = Fields.of(movie, workers=options.workers)
    candidates = first_candidates(movie, flow, options.nearest, options.workers)
    first = first_order(movie, candidates, flow, fields, options.workers)
    model, posterior = _best_start(movie, first, fields, options)
    if options.gaps:
        model, posterior = with_gaps(movie, model, posterior, options)
    return Learned(movie, *fit(movie, model, posterior, fields, options.last_rounds, options))


def _best_start(
    movie: Movie, first: FirstOrder, fields: Fields, options: LearnOptions
) -> tuple[Model, LinkPosterior]:
    """The best of the starts: more classes while the Bayesian information criterion falls."""
    start, best, most = narrowed(first.posterior), None, -np.inf
    for classes in options.classes:
        model = start_model(movie, first, classes, options)
        found = fit(movie, model, start, fields, options.first_rounds, options)
        parameters = classes * (movie.axes + 3)
        evidence = found[1].log_evidence - 0.5 * parameters * np.log(len(movie))
        if best is not None and evidence < most:
            break
        best, most = found, evidence
    assert best is not None
    return best
