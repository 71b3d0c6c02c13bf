"""Standard errors of learned parameters: a jackknife over groups of tracks, and a correction for EM.

One M-step without a group shifts a parameter. Further iterations of EM would increase this shift by the
factor 1 / (1 - rate), where rate is the convergence rate of EM (Meng and Rubin 1991, SEM). The rate is
measured by iterations from a nearby point.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import OPEN, ROUNDS, TINY
from ..inference.jpda import updated
from ..inference.posterior import LinkPosterior
from ..model import Model
from ..model.movie import Movie, chain_ends
from .em import Round, fit
from .m_steps import sums_of
from .options import LearnOptions
from .sample import part_of

_GROUPS = 8
"""Prior: number of groups of tracks; the relative accuracy of an error is then a quarter."""
_AWAY = 1.1
"""Guard: relative change of the noise in the measurement of the convergence rate."""


def standard_errors(movie: Movie, model: Model, posterior: LinkPosterior) -> dict[str, float]:
    """Standard errors of step and noise (means over the axes) and persistence."""
    posterior = updated(movie, model, posterior)
    assert posterior.moments is not None
    axes, group = movie.axes, _groups(movie, posterior)
    stats = sums_of(movie, model.motion, posterior, group, _GROUPS)
    late, fresh, product, early = np.moveaxis(stats.sums, 3, 0)
    squares = (late + fresh).sum(axis=1)
    product, early = ((part / model.motion.variance).sum(axis=(1, 2)) for part in (product, early))
    sums = [
        np.column_stack([stats.steps[:, :, :2].sum(axis=(1, 2)), squares, product, early]),
        np.column_stack([stats.links, stats.residual]),
    ]
    if not all((part[:, 0] > 1).all() for part in sums):
        return {}
    rate = _rate(*_part(movie, model, posterior))
    steps, away = (part.sum(axis=0) - part for part in sums)  # without each of the groups
    noise, seen = away[:, 1:] / away[:, :1], steps[:, 1 : 1 + axes] / steps[:, :1] + 2 * model.motion.noise
    noise, step = (
        [np.sqrt(movie.variance_given(one)).mean() for one in variances] for variances in (noise, seen)
    )
    kept, root = steps[:, 1 + axes] / np.maximum(steps[:, 2 + axes], TINY), np.sqrt(_GROUPS - 1)
    errors = {"step": float(np.std(step) * root), "noise": float(np.std(noise) * root / (1 - rate))}
    mean = float(kept.mean())
    if 0 < mean < 1:  # of -1 / log(kept)
        errors["persistence_frames"] = float(np.std(kept) * root / (mean * np.log(mean) ** 2))
    return errors


def _groups(movie: Movie, posterior: LinkPosterior) -> NDArray[np.int64]:
    """(N,) group of each detection; all detections of a track of probable links are in one group."""
    candidates, likely = posterior.candidates, posterior.probability > 0.5
    earlier = np.arange(len(movie))
    earlier[candidates.head[likely]] = candidates.tail[likely]
    return chain_ends(earlier) % _GROUPS


def _part(movie: Movie, model: Model, posterior: LinkPosterior) -> tuple[Movie, Model, LinkPosterior]:
    """The part of a movie over which the rate of EM is measured."""
    if len(movie) <= LearnOptions.trial:
        return movie, model, posterior
    part, some, sample = part_of(movie, posterior, LearnOptions.trial)
    steps = slice(sample.frames.start, sample.frames.stop - 1)
    return part, model.take("row", sample.rows).take("frame", steps), some


def _rate(movie: Movie, model: Model, posterior: LinkPosterior) -> float:
    """The share of a change of the noise that remains after one iteration of EM, at the slow rate.

    The first iterations remove the part that depends on noise alone. The part that is correlated with steps
    and correlations decays more slowly, and this slow rate determines the error.
    """
    away = replace(model, motion=replace(model.motion, noise=_AWAY * model.motion.noise))
    fits, left, options = [(model, posterior), (away, posterior)], [], LearnOptions()
    for rounds in ([Round()] * ROUNDS, [Round()]):
        fits = [fit(movie, *each, None, options, rounds) for each in fits]
        here, away = (each.motion.noise.mean() for each, _ in fits)
        left.append(np.log(away / here))
    return float(np.clip(left[1] / left[0], 0.0, 1 - OPEN))
