"""The posterior by passes: pairs are weighed by Kalman filters along previous links (`refine`).

This is the other solver of `infer`. It uses one velocity process and diffusion in place of the classes of the
model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model import Model, MotionModel
from ..model.gate import CHANCE, radius
from ..model.movie import Movie
from ..motion import Motion
from ..refine import settled_linking
from ..refine.linking import Linking, LinkModel
from ..refine.movie import Movie as Reading
from .candidates import candidates_of
from .posterior import LinkPosterior

LEAST_RATE = 1e-6
"""Guard: least rate, because rates of a `LinkModel` must be between 0 and 1."""
_SHORT = 0.5
"""Error level: persistence in frames below which there is no velocity."""


@dataclass(frozen=True)
class Passes:
    """Passes over the whole movie until no link and no probability changes.

    Parameters
    ----------
    passes : int
        Largest number of these.
    workers : int
        Threads; they do not change the result.
    """

    passes: int = 10
    workers: int = 1

    def posterior(self, movie: Movie, model: Model) -> LinkPosterior:
        """The posterior of the links of a movie."""
        axes, chance = movie.axes, CHANCE * float(np.median(movie.density))
        gate = (max(radius(model.motion, 1, chance), LEAST_RATE),) * axes
        rates = link_model(model, velocity_and_diffusion(model.motion), gate)
        order = np.arange(len(movie))
        reading = Reading(
            movie.frame, movie.position, order, movie.frame_start, "zyx"[:axes], time=movie.time
        )
        flow = model.surroundings.flow
        linking = settled_linking(reading, rates, flow, passes=self.passes, workers=self.workers)
        return _posterior(movie, rates, linking)


def velocity_and_diffusion(motion: MotionModel) -> Motion:
    """An Ornstein-Uhlenbeck velocity plus diffusion with the step correlations of all classes together.

    Examples
    --------
    >>> unit = np.ones(1)
    >>> walk = MotionModel(unit[:, None], 0.8 * unit, unit, 0 * unit, 0.01 * unit, unit)
    >>> found = velocity_and_diffusion(walk)
    >>> round(found.persistence, 2), round(float(found.step_variance(1)[0]), 2)
    (4.48, 1.02)
    """
    moved, noise = motion.share @ motion.variance, tuple(np.sqrt(motion.noise).tolist())
    kept, later = max(motion.kept(1), 0.0), max(motion.kept(2), 0.0)
    return ornstein_uhlenbeck(moved, (kept, later), noise)


def ornstein_uhlenbeck(
    moved: NDArray[np.float64], kept: tuple[float, float], noise: tuple[float, ...]
) -> Motion:
    """The motion with step variances (A,) and step correlations at lags 1 and 2."""
    lasting = min(kept[1] / kept[0], 1 - LEAST_RATE) if kept[0] > 0 else 0.0
    if lasting <= np.exp(-1 / _SHORT):
        return Motion.static(tuple(np.sqrt(moved).tolist()), noise)
    time = -1 / float(np.log(lasting))
    unit = float(Motion((0.0,), (1.0,), time, (0.0,)).step_variance(1)[0])
    speed2 = np.minimum(moved * kept[0] / (time * (1 - lasting)) ** 2, moved / unit)
    diffusion = np.sqrt(np.maximum(moved - speed2 * unit, 0.0))
    return Motion(tuple(diffusion.tolist()), tuple(np.sqrt(speed2).tolist()), time, noise)


def link_model(model: Model, motion: Motion, gate: tuple[float, ...]) -> LinkModel:
    """The rates of a model, with a motion and a gate."""
    rates = model.association
    real = 1 - rates.clutter
    end, start = (
        float(np.clip(1 - real * delay.sum(), LEAST_RATE, 1 - LEAST_RATE))
        for delay in (rates.delay, rates.delay_back)
    )
    clutter = min(rates.clutter, (1 - LEAST_RATE) * min(end, start))
    follow = real * rates.delay
    follow *= (1 - end) / max(float(follow.sum()), 1 - end)
    return LinkModel(motion, tuple(follow.tolist()), end, start, gate, clutter=clutter)


def _posterior(movie: Movie, model: LinkModel, linking: Linking) -> LinkPosterior:
    count = len(movie)
    key = linking.row.astype(np.int64) * count + linking.col
    order = np.argsort(key, kind="stable")
    candidates, probability = candidates_of(key[order], movie.frame), linking.probability[order]
    plain = LinkPosterior(candidates, probability, np.ones((2, candidates.size)))
    after, before = plain.linked(count)
    last, first = np.maximum(1 - after, 0), np.maximum(1 - before, 0)
    clutter = model.clutter * last / model.end * first / model.start
    clutter = np.minimum(clutter, np.minimum(last, first))
    return LinkPosterior(
        candidates, probability, plain.rivals, clutter=clutter, death=last - clutter, birth=first - clutter
    )
