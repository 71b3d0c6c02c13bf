"""Control of false divisions: by the movie in reversed time, and by the evidence.

Two spots that appear as one for a while look like daughters when they separate. Such spots also fuse, so a
time-reversed movie shows equally many apparent divisions. The number of divisions found in reversed time is
therefore the expected number of false ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import to_host
from ...compute.tolerances import ROUNDS, TINY
from ..inference.posterior import LinkPosterior
from ..learn.options import LearnOptions
from ..model import Model
from ..model.movie import Movie, summed
from .candidates import Divisions, candidate_divisions
from .daughters import DaughterModel
from .learning import Context, DivisionFit, bethe_evidence, fitted
from .reverse import in_reverse

_BEGIN = 0.3
"""Prior: initial share of starts that are daughters."""
_SAMPLE = 3000.0
"""Error level: starts in which divisions are looked for first; a tenth of them need no more."""
_MORE = 4
"""Guard: how many times as many are looked through next, if the evidence of those is not enough."""
_MARGIN = 8.0
"""Guard: spacings around these, beyond which links and divisions do not act on those within."""
_CLEAR = 3.0
"""Error level: standard deviations by which divisions found forward must exceed those found backward."""
_STRONG = 3.0
"""Error level: evidence in nats beyond the penalty for parameters, odds of 20 to 1 (Kass & Raftery 1995)."""


class DivisionEvidence(NamedTuple):
    """Divisions that a movie gives evidence of: their model, and the share of those found that is real."""

    model: DaughterModel
    real: float


def division_evidence(
    movie: Movie, model: Model, posterior: LinkPosterior, most: int = 2 * LearnOptions.sample
) -> DivisionEvidence | None:
    """Evidence of divisions; None if there is no sign of any.

    Divisions must clearly exceed those in reversed time, and have evidence beyond the cost of their
    parameters (the Bayesian information criterion). Both are computed from `most` detections in the middle of
    a movie that is not learned as a whole. If divisions are likely there but their evidence is not enough, a
    larger part is taken. The posterior is without divisions. All is computed where the arrays are.
    """
    whole, near = (movie, model, posterior), np.ones_like(movie.frame, np.bool_)
    starts = np.clip(1 - posterior.degree_probability()[1], 0, 1) * (movie.frame > 0)
    reach, many = _middle(movie, starts, most)
    if large := len(movie) > most:
        rows, near = _central(movie, reach, model.association.longest, most)
        many = float(starts[rows][near & (np.abs(movie.frame[rows] - (movie.frames - 1) / 2) <= reach)].sum())
        movie, model = movie.at(rows), model.take("row", rows)
        posterior, _ = posterior.at(rows, movie.frame)
    forward, context = _first_fit(movie, model, posterior, near, reach, many)
    count = _count(forward)
    if count <= _CLEAR * np.sqrt(count):
        return None
    nothing = forward.divisions.take("division", slice(0))
    null = fitted(context, nothing, replace(forward.model, death=1.0, birth=1.0), 0.0)
    evidence = bethe_evidence(context, forward) - bethe_evidence(context, null)
    if evidence <= _STRONG + 0.5 * forward.model.parameters * np.log1p(many):
        return division_evidence(*whole, _MORE * most) if large and many < _SAMPLE else None
    backward = _count(_first_fit(*in_reverse(movie, model, posterior), near[::-1], reach, many)[0])
    excess = count - backward
    if excess <= _CLEAR * np.sqrt(count + backward):
        return None
    return DivisionEvidence(forward.next_model, excess / count)


def likely_divisions(
    movie: Movie, model: Model, posterior: LinkPosterior, known: DaughterModel
) -> tuple[Divisions, DivisionFit, Context]:
    """Divisions that may be; and the fit of all candidates from a known model, and its context."""
    every = candidate_divisions(movie, model.local.flow, posterior, np.ones_like(movie.frame, bool))
    whole = Context.of(movie, model, posterior).near(every)
    fit = fitted(whole, every, known, 0.0, rounds_over(movie))
    return every.take("division", fit.probability > TINY), fit, whole


def rounds_over(movie: Movie) -> int:
    """Rounds of EM over a movie: one where the model was learned from a part."""
    return ROUNDS if LearnOptions().whole(len(movie)) else 1


def _middle(movie: Movie, starts: NDArray[np.float64], most: int) -> tuple[float, float]:
    """Distance of frames from the middle frame within which there are at most `_SAMPLE` starts, and these.

    There are at most `most` detections, too.
    """
    away = np.abs(np.arange(movie.frames) - (movie.frames - 1) / 2)
    order = np.argsort(away, kind="stable")
    total = np.cumsum(to_host(summed(movie.frame, starts, movie.frames))[order])
    counts = np.diff(movie.frame_start)[order]
    inside = (total <= _SAMPLE) & (np.cumsum(counts) <= most)
    last = max(int(inside.sum()) - 1, int((counts > 0).argmax()))
    return float(away[order[last]]), float(total[last])


def _central(movie: Movie, reach: float, lags: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows (M,) of `most` detections near the middle and of those around; which are among them (M,)."""
    away = np.abs(movie.frame - (movie.frames - 1) / 2)
    rows = np.flatnonzero(away <= reach + lags + 1)
    inner = away[rows] <= reach
    apart = np.sqrt(sum(np.square(column - np.median(column[inner])) for column in movie.position[rows].T))
    many = min(most, int(inner.sum()))
    radius = np.partition(apart[inner], many - 1)[many - 1]
    around = apart <= radius + _MARGIN
    return rows[around], apart[around] <= radius


def _first_fit(
    movie: Movie, model: Model, posterior: LinkPosterior, near: NDArray[np.bool_], reach: float, starts: float
) -> tuple[DivisionFit, Context]:
    """The fit to frames near the middle, and its context."""
    heads = near & (np.abs(movie.frame - (movie.frames - 1) / 2) <= reach)
    tails = near & (np.abs(movie.frame + 1 - (movie.frames - 1) / 2) <= reach)
    divisions = candidate_divisions(movie, model.local.flow, posterior, heads)
    context = Context.of(movie, model, posterior).near(divisions, np.stack([tails, heads]))
    context, divisions = context.of_rows(divisions)
    rate = (_BEGIN * starts / 2 + 0.5) / (float(context.scaled[0].sum()) + 1)
    return fitted(context, divisions, DaughterModel.initial(rate, movie.axes), 0.0), context


def _count(fit: DivisionFit) -> float:
    """Number of likely divisions."""
    return float((fit.probability > 0.5).sum())
