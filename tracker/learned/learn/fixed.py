"""Fixed parameters: given values, which M-steps do not change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module
from ...compute.tolerances import LEAST, ROUNDS
from ..inference.candidates import Candidates
from ..model import AssociationModel, Model, MotionModel
from ..model.advection import displaced
from ..model.movie import Movie


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
    persistence_frames : float, optional
        Frames over which the correlation of steps falls to 1/e, at most; 0 for none.
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
    persistence_frames: float | None = None
    end: float | None = None
    start: float | None = None
    miss: float | None = None
    clutter: float | None = None

    def apply(self, movie: Movie, model: Model) -> Model:
        """The model with given values in place of learned ones."""
        if self == NOTHING_FIXED:
            return model
        return replace(model, motion=self._motion(movie, model), association=self._rates(model.association))

    def within_gate(
        self, movie: Movie, flow: NDArray[np.float64], candidates: Candidates
    ) -> NDArray[np.bool_]:
        """(E,) whether candidates are within the given gate around the position predicted by the flow."""
        if self.gate is None:
            return array_module(movie.frame).ones(candidates.size, dtype=np.bool_)
        tail, head, lag = candidates.tail, candidates.head, candidates.lag.astype(np.float64)
        away = movie.position[head] - movie.position[tail] - displaced(movie, flow, (tail, candidates.lag))
        given = array_module(away).asarray(np.linalg.pinv(movie.basis) / np.asarray(self.gate))
        return np.square(away @ given).sum(axis=1) <= lag**1.5

    def rotated(self, movie: Movie, flow: NDArray[np.float64]) -> tuple[Movie, NDArray[np.float64]]:
        """The movie and the flow along axes on which noise (or else steps) that is given does not covary."""
        given = self.noise if self.noise is not None else self.step
        if given is None:
            return movie, flow
        _, turn = np.linalg.eigh((movie.basis.T * np.square(given)) @ movie.basis)
        rotated = np.ascontiguousarray(movie.position @ turn)
        return replace(movie, position=rotated, basis=movie.basis @ turn), flow @ turn

    def _motion(self, movie: Movie, model: Model) -> MotionModel:
        motion = model.motion
        noise, variance = motion.noise, motion.variance
        if self.noise is not None:
            noise = np.maximum(movie.variance_here(np.square(self.noise)), LEAST * variance.min(axis=0))
        if self.step is not None:
            seen = movie.variance_here(np.square(self.step))
            shared = movie.mean_square(model.local.flow)
            own = seen - shared
            given = variance * np.maximum(own - 2 * noise, LEAST * seen) / (motion.share @ variance)
            # Where steps are mostly those of neighbours, they hardly say how far particles go beside these.
            variance = np.where(own > shared, given, variance)
        motion = replace(motion, noise=noise, variance=variance)
        if self.persistence_frames is None:
            return motion
        if self.persistence_frames <= 0:
            return replace(motion, correlation=np.zeros_like(motion.correlation))
        # An autoregression keeps less than velocities do, if there is diffusion beside: so this is a bound.
        lost = -np.log(np.clip(motion.correlation * (1 - motion.renewal), LEAST, 1 - LEAST))
        weight = motion.share * motion.variance.sum(axis=1)
        wanted = np.clip(1 / self.persistence_frames, LEAST, -np.log(LEAST))
        power = 1.0
        for _ in range(ROUNDS):
            kept = np.exp(-power * lost)
            power *= wanted / -np.log((weight * kept) @ kept / (weight @ kept))
            power = max(power, 1.0)
        kept = np.maximum(motion.correlation, 0) ** power
        return replace(motion, correlation=kept, renewal=1 - (1 - motion.renewal) ** power)

    def _rates(self, rates: AssociationModel) -> AssociationModel:
        clutter = rates.clutter if self.clutter is None else max(self.clutter, LEAST)
        delays: list[NDArray[np.float64]] = []
        for delay, unlinked in ((rates.delay, self.end), (rates.delay_back, self.start)):
            total = float(delay.sum()) if unlinked is None else min((1 - unlinked) / (1 - clutter), 1 - LEAST)
            fall: NDArray[np.float64] = (
                delay if self.miss is None else max(self.miss, LEAST) ** np.arange(len(delay), dtype=float)
            )
            fall = fall * (total / float(fall.sum()))
            if len(delay) > 1 and not delay[1:].any():  # gaps are sought later: until then who is missed ends
                fall = np.minimum(delay, fall[0])
            delays.append(fall)
        return AssociationModel(delays[0], delays[1], clutter)


NOTHING_FIXED = Fixed()
