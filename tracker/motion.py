"""Motion model: how far a particle moves in a frame, its persistence, and the localisation noise.

One family of motion models covers the usual ones. Independently along each axis, the velocity is an
Ornstein-Uhlenbeck process. The position moves with this velocity and diffuses, and it is observed with a
Gaussian error. A particle whose velocity is always 0 is Brownian; one whose velocity never changes moves
straight on. States are Gaussian: `predict` and `update` are the Kalman filter, one particle a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import SettingsError

_LONG = 1e5
"""Frames of persistence from which on a velocity counts as never forgotten: the variances then round to 0."""

SHORT = 1e-9
"""Frames of persistence below which nothing is remembered."""

_FLOOR = 1e-3
"""Least speed, noise and diffusion of a filter, in steps."""


@dataclass(frozen=True)
class Motion:
    r"""Persistent walk with diffusion, seen with localisation noise; axes as in the positions.

    With P the persistence, :math:`a = e^{-t/P}` and S² the squared speed along an axis, t frames take
    v to a v + ξ and x to x + P (1 - a) v + η, with the variances S² (1 - a²) and
    S² P² (2t/P - 3 + 4a - a²) + D² t and the covariance S² P (1 - a)² (Fürth 1920).

    Parameters
    ----------
    diffusion : tuple of float
        D: standard deviation of the step that is forgotten at once, along each axis, in one frame.
    speed : tuple of float
        S: root mean square of the velocity along each axis, in units per frame.
    persistence : float
        P in frames; ``inf`` for a velocity that never changes.
    noise : tuple of float
        Standard deviation of the localisation error along each axis.

    Raises
    ------
    SettingsError
        If the tuples differ in length, or a value is negative or not a number.

    Examples
    --------
    >>> walk = Motion.static((0.5, 0.5), noise=(0.1, 0.1))
    >>> walk.step_variance(1).round(3).tolist()
    [0.27, 0.27]
    """

    diffusion: tuple[float, ...]
    speed: tuple[float, ...]
    persistence: float
    noise: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.diffusion) == len(self.speed) == len(self.noise):
            raise SettingsError("diffusion, speed and noise need one value for each axis.")
        if not all(0 <= value < math.inf for value in (*self.diffusion, *self.speed, *self.noise)):
            raise SettingsError("diffusion, speed and noise must be finite and 0 or more.")
        if not self.persistence >= 0:
            raise SettingsError(f"persistence is {self.persistence}; it must be 0 frames or more.")

    @classmethod
    def static(cls, diffusion: tuple[float, ...], noise: tuple[float, ...] | None = None) -> Motion:
        """Motion model of particles that diffuse, without a velocity that lasts."""
        nothing = (0.0,) * len(diffusion)
        return cls(diffusion, nothing, 0.0, nothing if noise is None else noise)

    @classmethod
    def constant_velocity(cls, speed: tuple[float, ...], noise: tuple[float, ...]) -> Motion:
        """Motion model of particles that keep their velocity, whose standard deviation is `speed`."""
        return cls((0.0,) * len(speed), speed, math.inf, noise)

    @property
    def axes(self) -> int:
        """Number of axes of the motion."""
        return len(self.diffusion)

    def transition(self, frames: float) -> NDArray[np.float64]:
        """(axes, 5) float64: reach P (1 - a), a, and the variances xx, xv and vv that `frames` frames add."""
        speed2, diffusion2 = np.square(self.speed), np.square(self.diffusion)
        time = self.persistence
        if time > _LONG:
            reach, kept, grown, mixed, lost = frames, 1.0, 0.0, 0.0, 0.0
        elif time < SHORT:
            reach, kept, grown, mixed, lost = 0.0, 0.0, 0.0, 0.0, 1.0
        else:
            forgotten = -math.expm1(-frames / time)
            reach, kept = time * forgotten, 1 - forgotten
            grown = max(time**2 * (2 * frames / time - 2 * forgotten - forgotten**2), 0.0)
            mixed, lost = time * forgotten**2, forgotten * (2 - forgotten)
        found = np.empty((self.axes, 5))
        found[:, 0], found[:, 1] = reach, kept
        found[:, 2] = speed2 * grown + diffusion2 * frames
        found[:, 3], found[:, 4] = speed2 * mixed, speed2 * lost
        return found

    def floored(self) -> Motion:
        """Copy of the motion model with values raised above 0, because a filter may divide by them."""
        least = _FLOOR * np.maximum(np.sqrt(self.step_variance(1)), 1e-30)
        diffusion, speed, noise = (
            tuple(np.maximum(given, least).tolist()) for given in (self.diffusion, self.speed, self.noise)
        )
        return Motion(diffusion, speed, self.persistence, noise)

    def widened(self, share: float) -> Motion:
        """The motion with its step variance multiplied by `share`, at least the variance of noise alone.

        Examples
        --------
        >>> walk = Motion.static((0.5,), noise=(0.1,))
        >>> walk.widened(1.2).step_variance(1) / walk.step_variance(1)
        array([1.2])
        """
        noise2, before = 2 * np.square(self.noise), self.step_variance(1)
        moved = np.maximum(before - noise2, 0.0)
        wider = np.sqrt(np.maximum(share * before - noise2, 0.0) / np.where(moved > 0, moved, 1.0))
        diffusion, speed = (tuple((wider * given).tolist()) for given in (self.diffusion, self.speed))
        return Motion(diffusion, speed, self.persistence, self.noise)

    def step_variance(self, frames: float) -> NDArray[np.float64]:
        """(axes,) variance of an observed displacement over `frames` frames."""
        reach, _, grown, _, _ = self.transition(frames).T
        return reach**2 * np.square(self.speed) + grown + 2 * np.square(self.noise)

    def step_covariance(self, lag: int) -> NDArray[np.float64]:
        """(axes,) covariance of two observed steps, one frame long and `lag` frames apart.

        Examples
        --------
        >>> Motion.static((0.5,), noise=(0.1,)).step_covariance(1).round(3).tolist()
        [-0.01]
        """
        if lag == 0:
            return self.step_variance(1)
        reach, kept, *_ = self.transition(1).T
        speed2 = np.square(self.speed)
        along = speed2 if self.persistence > _LONG else speed2 * reach**2 * kept ** (lag - 1)
        return along - (np.square(self.noise) if lag == 1 else 0.0)


@dataclass(frozen=True, eq=False)
class State:
    """Estimated states of N particles: Gaussian along each axis.

    Parameters
    ----------
    mean : (N, axes, 2) float64 array
        Position and velocity.
    covariance : (N, axes, 3) float64 array
        Variance of the position, covariance of position and velocity, variance of the velocity.
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


def first_state(motion: Motion, position: NDArray[np.float64]) -> State:
    """State after one detection: (N, axes) detected positions, velocities with the movie's variance."""
    mean = np.zeros((*position.shape, 2))
    mean[..., 0] = position
    covariance = np.zeros((*position.shape, 3))
    covariance[..., 0] = np.square(motion.noise)
    covariance[..., 2] = np.square(motion.speed)
    return State(mean, covariance)


def predict(motion: Motion, state: State, frames: float) -> State:
    """Predict the states `frames` frames later.

    Examples
    --------
    >>> motion = Motion.constant_velocity((1.0,), noise=(0.1,))
    >>> now = State(np.array([[[0.0, 2.0]]]), np.array([[[0.01, 0.0, 1.0]]]))
    >>> predict(motion, now, 3).mean.tolist(), predict(motion, now, 3).covariance.tolist()
    ([[[6.0, 2.0]]], [[[9.01, 3.0, 1.0]]])
    """
    reach, kept, q_xx, q_xv, q_vv = motion.transition(frames).T
    x, v = state.mean[..., 0], state.mean[..., 1]
    xx, xv, vv = np.moveaxis(state.covariance, -1, 0)
    return State(
        np.stack([x + reach * v, kept * v], axis=-1),
        np.stack(
            [
                xx + 2 * reach * xv + reach**2 * vv + q_xx,
                kept * (xv + reach * vv) + q_xv,
                kept**2 * vv + q_vv,
            ],
            axis=-1,
        ),
    )


def update(motion: Motion, state: State, position: NDArray[np.float64]) -> State:
    """Update the states with detections at `position` (N, axes)."""
    xx, xv, vv = np.moveaxis(state.covariance, -1, 0)
    total = xx + np.square(motion.noise)
    total = np.where(total > 0, total, 1.0)
    gain_x, gain_v = xx / total, xv / total
    surprise = position - state.mean[..., 0]
    return State(
        state.mean + np.stack([gain_x * surprise, gain_v * surprise], axis=-1),
        np.stack([(1 - gain_x) * xx, (1 - gain_x) * xv, vv - gain_v * xv], axis=-1),
    )


def negative_log_likelihood(
    motion: Motion, state: State, position: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""(N,) minus the log density of seeing predicted particles at `position` (N, axes).

    .. math:: \tfrac12 \sum_k \Big[\frac{(y_k - x_k)^2}{s_k} + \log 2 \pi s_k\Big]

    with s the variance of the prediction and the noise together: squared Mahalanobis distance plus log
    determinant, so that costs of particles of different certainty are comparable.

    Examples
    --------
    >>> motion = Motion.static((1.0,))
    >>> now = predict(motion, first_state(motion, np.array([[0.0]])), 1)
    >>> negative_log_likelihood(motion, now, np.array([[2.0]])).round(3).tolist()
    [2.919]
    """
    variance = state.covariance[..., 0] + np.square(motion.noise)
    distance2 = (position - state.mean[..., 0]) ** 2 / variance
    return 0.5 * (distance2 + np.log(2 * np.pi * variance)).sum(axis=-1)
