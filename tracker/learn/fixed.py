"""Fixed parameters: given values, which M-steps do not change."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..inference.candidates import Candidates
from ..model import AssociationModel, Model, MotionModel
from ..model.advection import displaced
from ..model.movie import Movie

_LEAST = 1e-6
"""Guard: least share of motion in the step variance, if more noise is given; rates that count as zero."""


@dataclass(frozen=True)
class Fixed:
    """Parameters that are given instead of learned; None for each that is learned.

    Parameters
    ----------
    step : tuple of float, optional
        Standard deviation of the observed displacement in one frame, along each original axis.
    noise : tuple of float, optional
        Standard deviation of localisation along each original axis.
    gate : tuple of float, optional
        Radii of the gate for the next frame, along each original axis; over g frames they grow by g^(3/4).
    persistence : float, optional
        Frames over which the correlation of steps falls to 1/e; 0 for none.
    end, start : float, optional
        Probability that a detection has no successor, and no predecessor; clutter has neither.
    miss : float, optional
        Probability that a particle is missed in a frame.
    clutter : float, optional
        Probability that a detection is clutter.
    """

    step: tuple[float, ...] | None = None
    noise: tuple[float, ...] | None = None
    gate: tuple[float, ...] | None = None
    persistence: float | None = None
    end: float | None = None
    start: float | None = None
    miss: float | None = None
    clutter: float | None = None

    def held(self, movie: Movie, model: Model) -> Model:
        """The model with given values in place of learned ones."""
        if self == NOTHING_FIXED:
            return model
        return replace(
            model, motion=self._motion(movie, model.motion), association=self._rates(model.association)
        )

    def reached(self, movie: Movie, flow: NDArray[np.float64], candidates: Candidates) -> NDArray[np.bool_]:
        """(E,) whether candidates are within the given gate around the position predicted by the flow."""
        if self.gate is None:
            return np.ones(candidates.size, dtype=np.bool_)
        tail, head, lag = candidates.tail, candidates.head, candidates.lag.astype(np.float64)
        away = movie.position[head] - movie.position[tail] - displaced(movie, flow, (tail, candidates.lag))
        away = away @ np.linalg.pinv(movie.basis) / np.asarray(self.gate)
        return np.asarray(np.square(away).sum(axis=1) <= lag**1.5)

    def turned(self, movie: Movie, flow: NDArray[np.float64]) -> tuple[Movie, NDArray[np.float64]]:
        """The movie and the flow along axes on which noise (or else steps) that is given does not covary."""
        given = self.noise if self.noise is not None else self.step
        if given is None:
            return movie, flow
        _, turn = np.linalg.eigh((movie.basis.T * np.square(given)) @ movie.basis)
        turned = np.ascontiguousarray(movie.position @ turn)
        return replace(movie, position=turned, basis=movie.basis @ turn), flow @ turn

    def _motion(self, movie: Movie, motion: MotionModel) -> MotionModel:
        noise, variance = motion.noise, motion.variance
        if self.noise is not None:
            noise = np.maximum(movie.variance_here(np.square(self.noise)), _LEAST * variance.min(axis=0))
        if self.step is not None:
            seen = movie.variance_here(np.square(self.step))
            variance = variance * np.maximum(seen - 2 * noise, _LEAST * seen) / (motion.share @ variance)
        motion = replace(motion, noise=noise, variance=variance)
        if self.persistence is None:
            return motion
        time = self.persistence
        kept = min(math.exp(-1 / time), 1 - _LEAST) if time > 0 else 0.0
        # A class is left less often than that, and keeps the rest: turns and jumps stay possible.
        renewal = np.minimum(motion.renewal, 1 - kept)
        return replace(motion, correlation=np.minimum(kept / (1 - renewal), 1 - _LEAST), renewal=renewal)

    def _rates(self, rates: AssociationModel) -> AssociationModel:
        clutter = rates.clutter if self.clutter is None else max(self.clutter, _LEAST)
        delays = []
        for delay, none in ((rates.delay, self.end), (rates.delay_back, self.start)):
            total = float(delay.sum()) if none is None else min((1 - none) / (1 - clutter), 1 - _LEAST)
            fall = delay if self.miss is None else self._missed(len(delay))
            delays.append(fall * (total / float(fall.sum())))
        return AssociationModel(delays[0], delays[1], clutter)

    def _missed(self, lags: int) -> NDArray[np.float64]:
        assert self.miss is not None
        return np.maximum(self.miss, _LEAST) ** np.arange(lags)


NOTHING_FIXED = Fixed()
