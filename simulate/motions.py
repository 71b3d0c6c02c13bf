"""Motions: how a particle moves without walls, exact at the frame times.

Each motion is a small class with the same two methods. The unit of time is the frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import expm1, sqrt

import numpy as np
from numpy.typing import NDArray

from .ranges import require

Vectors = NDArray[np.float64]
"""(N, 3) float64, axes z, y, x."""


class Motion(ABC):
    """How a particle moves without walls; one more motion is one more subclass.

    The state of a particle is its velocity, a vector along the axes of the box, because walls reverse
    it. A motion without memory ignores the velocity that it is given.
    """

    @abstractmethod
    def start(self, count: int, rng: np.random.Generator) -> Vectors:
        """Velocities (count, 3) of new particles in the steady state, in units per frame."""

    @abstractmethod
    def move(self, velocity: Vectors, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
        """Displacements (N, 3) until the next frame, and the velocities (N, 3) in that frame."""


@dataclass(frozen=True)
class PersistentWalk(Motion):
    r"""The persistent random walk of Vasconcelos & Rosenhahn (their section 6).

    The velocity is ``persistence * c + (1 - persistence) * b``. The correlation vector c has
    the direction of the previous step, the bias vector b a random direction; both have the length
    `step`. The paper does not specify the lengths. With equal lengths a persistence of 0 is an
    uncorrelated walk and a persistence of 1 is straight motion, both at the speed `step`.

    Parameters
    ----------
    step : float
        Length of both vectors, units per frame; no displacement is longer.
    persistence : float
        From 0 to 1.

    Raises
    ------
    SettingsError
        If the step is negative or not finite, or the persistence is not within [0, 1].

    Notes
    -----
    With p the persistence and q = 1 - p, the mean squared displacement after n frames is

    .. math:: step^2 [n (p^2 + q^2) + 2 p r \sum_{m=1}^{n-1} (n - m) g^{m-1}]

    where g, the mean cosine between successive directions, is 1 - q²/3p² and r, the mean speed, is
    p + q²/3p if p >= q; otherwise they are 2p/3q and q + p²/3q.

    References
    ----------
    C. N. Vasconcelos and B. Rosenhahn, Bipartite graph matching computation on GPU, EMMCVPR 2009.

    Examples
    --------
    >>> straight = PersistentWalk(step=2.0, persistence=1.0)
    >>> straight.move(np.array([[0.0, 2.0, 0.0]]), np.random.default_rng(0))[0].tolist()
    [[0.0, 2.0, 0.0]]
    """

    step: float
    persistence: float

    def __post_init__(self) -> None:
        require("step", self.step, 0)
        require("persistence", self.persistence, 0, 1)

    def start(self, count: int, rng: np.random.Generator) -> Vectors:
        return self.step * _directions(rng.standard_normal((count, 3)))

    def move(self, velocity: Vectors, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
        correlation = _directions(velocity)
        bias = _directions(rng.standard_normal(velocity.shape))
        velocity = self.step * (self.persistence * correlation + (1 - self.persistence) * bias)
        return velocity, velocity


@dataclass(frozen=True)
class BrownianWalk(Motion):
    """Diffusion: independent Gaussian displacements, N(0, sigma²) along each axis.

    The mean squared displacement after n frames is 3 n sigma²; the diffusion coefficient is
    sigma²/2 a frame.

    Parameters
    ----------
    sigma : float
        Standard deviation of the displacement in one frame along each axis, in units.

    Raises
    ------
    SettingsError
        If sigma is negative or not finite.

    Examples
    --------
    >>> walk, rng = BrownianWalk(sigma=0.5), np.random.default_rng(0)
    >>> displacement, _ = walk.move(walk.start(100_000, rng), rng)
    >>> displacement.std(axis=0).round(2).tolist()
    [0.5, 0.5, 0.5]
    """

    sigma: float

    def __post_init__(self) -> None:
        require("sigma", self.sigma, 0)

    def start(self, count: int, rng: np.random.Generator) -> Vectors:
        return rng.normal(0.0, self.sigma, (count, 3))

    def move(self, velocity: Vectors, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
        displacement = rng.normal(0.0, self.sigma, velocity.shape)
        return displacement, displacement


@dataclass(frozen=True)
class OrnsteinUhlenbeckWalk(Motion):
    r"""The walk of Fürth: the velocity is an Ornstein-Uhlenbeck process, exact at the frame times.

    With S the speed, P the persistence time and a = exp(-1/P), one frame takes v to a v + ξ and x to
    x + P (1 - a) v + η; ξ and η are Gaussian, along each axis with the variances S² (1 - a²)/3 and
    S² P² (2/P - 3 + 4a - a²)/3 and the covariance S² P (1 - a)²/3. The mean squared displacement
    after t frames is 2 S² P (t - P (1 - exp(-t/P))).

    Parameters
    ----------
    speed : float
        Root mean square of the velocity, over all three axes, units per frame.
    persistence_time : float
        P, the decay time of the autocorrelation of the velocity, in frames; from 1e-6 to 1e6.

    Raises
    ------
    SettingsError
        If the speed is negative or not finite, or the persistence time is out of its range.

    References
    ----------
    R. Fürth, Die Brownsche Bewegung bei Berücksichtigung einer Persistenz der Bewegungsrichtung,
    Zeitschrift für Physik 2, 1920.

    Examples
    --------
    >>> walk, rng = OrnsteinUhlenbeckWalk(speed=1.0, persistence_time=1e6), np.random.default_rng(0)
    >>> velocity = walk.start(5, rng)
    >>> bool(np.allclose(walk.move(velocity, rng)[0], velocity, atol=0.01))  # all but straight flight
    True
    """

    speed: float
    persistence_time: float

    def __post_init__(self) -> None:
        require("speed", self.speed, 0)
        # Outside this range rounding errors exceed the variance of η; the walk is Brownian, or straight.
        require("persistence_time", self.persistence_time, 1e-6, 1e6)

    def start(self, count: int, rng: np.random.Generator) -> Vectors:
        return rng.normal(0.0, self.speed / sqrt(3), (count, 3))

    def move(self, velocity: Vectors, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
        forgotten = -expm1(-1 / self.persistence_time)  # 1 - a; the formulas below use it instead of a
        variance = self.speed**2 / 3
        of_velocity = variance * forgotten * (2 - forgotten)
        of_position = (
            variance * self.persistence_time**2 * (2 / self.persistence_time - 2 * forgotten - forgotten**2)
        )
        covariance = variance * self.persistence_time * forgotten**2
        slope = covariance / of_velocity if of_velocity else 0.0
        kick = rng.normal(0.0, sqrt(of_velocity), velocity.shape)
        displacement = rng.normal(0.0, sqrt(max(of_position - slope * covariance, 0.0)), velocity.shape)
        displacement += slope * kick
        displacement += self.persistence_time * forgotten * velocity
        return displacement, (1 - forgotten) * velocity + kick


@dataclass(frozen=True)
class AutoregressiveWalk(BrownianWalk):
    """Autoregressive steps: v' = m v + sqrt(1 - m²) ξ, x' = x + v', with ξ ~ N(0, sigma²).

    Parameters
    ----------
    sigma : float
        Standard deviation of the step of a frame along each axis, in units.
    memory : float
        m, the correlation of successive steps, from 0 to 1.

    Raises
    ------
    SettingsError
        If sigma is negative or not finite, or the memory not within [0, 1].

    Examples
    --------
    >>> walk, rng = AutoregressiveWalk(sigma=0.5, memory=0.8), np.random.default_rng(0)
    >>> first = walk.start(100_000, rng)
    >>> second, _ = walk.move(first, rng)
    >>> second.std(axis=0).round(2).tolist(), round(float((first * second).mean() / 0.25), 2)
    ([0.5, 0.5, 0.5], 0.8)
    """

    memory: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require("memory", self.memory, 0, 1)

    def move(self, velocity: Vectors, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
        kick = rng.normal(0.0, self.sigma, velocity.shape)
        velocity = self.memory * velocity + sqrt(1 - self.memory**2) * kick
        return velocity, velocity


def _directions(vector: Vectors) -> Vectors:
    """The vectors scaled to length 1; a vector of length 0 is unchanged."""
    length = np.sqrt(np.einsum("ij,ij->i", vector, vector))
    return vector / np.where(length > 0, length, 1.0)[:, None]
