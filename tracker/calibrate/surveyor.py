"""Surveyor: estimates of rates and steps without links, used while the model is learned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..refine.linking import LinkModel
from ..refine.movie import Movie
from .census import Census, counted
from .survey import Survey, surveyed

_SAME, _ALIKE = 0.15, 0.05
"""Changes of a variance, and of the correlation of two steps, that are ignored."""
_GAUSSIAN = 10.0
"""Degrees of freedom above which tails are hardly heavier than a Gaussian's."""
_ASTRAY = 0.25
"""Share of wrong links above which heavy tails are attributed to them."""
_UNLIKE, _FEW = 0.1, 0.1
"""Log of the ratio of step lengths above which a frame is unusual; share of such frames that is ignored."""


class Surveyor:
    """Surveys a movie, and repeats this if the motion model changes.

    Parameters
    ----------
    movie : Movie
    workers : int
    sure : bool
        Whether clutter is fixed; then only steps and the share detected again are estimated.
    """

    def __init__(self, movie: Movie, workers: int = 1, *, sure: bool = False) -> None:
        self._movie, self._workers, self._sure = movie, workers, sure
        self._surveyed_by: LinkModel | None = None
        self._counted_by: LinkModel | None = None
        self._survey: Survey | None = None
        self._census: Census | None = None

    def revised(
        self, model: LinkModel, *, doubt: float, reach: NDArray[np.float64] | float = 1.0
    ) -> LinkModel:
        """The model with steps and rates of the survey, if a survey is possible.

        Parameters
        ----------
        model : LinkModel
        doubt : float
            Share of the links that may be wrong by which it is.
        reach : (F,) float64 array, or one for all
            How far particles go from each frame to the next, in what is usual: where that differs no survey
            is asked, which knows one step for all frames.
        """
        gaussian = model.freedom == 0 or model.freedom > _GAUSSIAN or doubt > _ASTRAY
        if gaussian and np.mean(np.abs(np.log(reach)) > _UNLIKE) <= _FEW:
            if self._surveyed_by is None or not _moves_alike(self._surveyed_by, model):
                self._surveyed_by = model
                self._survey = surveyed(self._movie, model, doubt=doubt, workers=self._workers)
            if self._survey is not None:
                model = self._survey.widened(model if self._sure else self._survey.revised(model), doubt)
        if self._counted_by is None or not _goes_alike(self._counted_by, model):
            self._counted_by = model
            step = np.quantile(reach, 1 - _FEW) * np.sqrt(model.motion.floored().step_variance(1))
            self._census = counted(self._movie, step, workers=self._workers)
        return model if self._census is None else self._census.revised(model)


def _goes_alike(one: LinkModel, other: LinkModel) -> bool:
    """Whether two motion models have nearly the same step length."""
    here, there = (model.motion.floored().step_variance(1) for model in (one, other))
    return np.allclose(there, here, rtol=_SAME, atol=0)


def _moves_alike(one: LinkModel, other: LinkModel) -> bool:
    """Whether two motion models predict nearly the same steps."""
    here, there = (model.motion.floored() for model in (one, other))
    mixed = np.abs(here.step_covariance(1) - there.step_covariance(1))
    return _goes_alike(one, other) and bool((mixed <= _ALIKE * here.step_variance(1)).all())
