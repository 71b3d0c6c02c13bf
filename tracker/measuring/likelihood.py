r"""The Gaussian likelihood of steps: motions, localisation error and motion blur.

Along one axis the steps of a track, :math:`x_{n+1} - x_n`, have the covariance

.. math:: C_k = s\,[\tfrac12 (m(k+1) - 2 m(k) + m(k-1)) + ρ\,(2 δ_{k0} - δ_{k1})]

at a lag of k intervals. m is the mean square displacement of the motion, with m(1) = 1, s the mean square
step along the axis, and ρ s the variance of the localisation error. Motion blur lowers ρ, for diffusion by at
most 1/6 (Berglund 2010): ρ may be negative, so the exposure need not be known.

References
----------
A. J. Berglund, Statistics of camera-based single-particle tracking, Phys. Rev. E 82, 2010.
C. L. Vestergaard, P. C. Blainey, H. Flyvbjerg, Optimal estimation of diffusion coefficients from
single-particle trajectories, Phys. Rev. E 89, 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, lapack, toeplitz

Floats = NDArray[np.float64]

LONGEST = 32
"""Steps of a piece of a track; correlations over more intervals are not used."""
BLUR = 1 / 6
"""Theory: what motion blur subtracts from ρ at most, for an exposure of the whole interval."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Steps of many tracks, in pieces without a gap of at most `LONGEST` steps.

    Parameters
    ----------
    step : (L, P, A) float64 array
        Steps of each piece along each axis, 0 after its end.
    length : (P,) int64 array
        Steps of each piece.
    owner : (P,) int64 array
        The track that a piece belongs to.
    count : int
        Number of tracks.
    """

    step: Floats
    length: NDArray[np.int64]
    owner: NDArray[np.int64]
    count: int

    def take(self, chosen: NDArray[np.bool_]) -> Pieces:
        """The pieces of some tracks, (T,) bool; the tracks keep their numbers."""
        kept = chosen[self.owner]
        return Pieces(self.step[:, kept], self.length[kept], self.owner[kept], self.count)

    def steps_of(self) -> Floats:
        """(T,) number of steps of each track in its pieces."""
        return np.bincount(self.owner, self.length, self.count).astype(np.float64)


@dataclass(frozen=True)
class Motion:
    """A family of motions: how m depends on one parameter, and the range of that parameter.

    Parameters
    ----------
    name : str
    displacement : callable
        m of times in intervals, (n,) float64, and the parameter.
    low, high : float
        Range of the parameter.
    """

    name: str
    displacement: Callable[[Floats, float], Floats]
    low: float
    high: float


def _fractional(time: Floats, exponent: float) -> Floats:
    return time**exponent


def _persistent(time: Floats, logarithm: float) -> Floats:
    """Fürth's walk: t - P (1 - exp(-t/P))."""
    persistence = np.exp(logarithm)
    return np.asarray(time + persistence * np.expm1(-time / persistence))


def _confined(time: Floats, logarithm: float) -> Floats:
    """Ornstein and Uhlenbeck's motion around a place: T (1 - exp(-t/T))."""
    return np.asarray(-np.exp(logarithm) * np.expm1(-time / np.exp(logarithm)))


FRACTIONAL = Motion("exponent", _fractional, 0.05, 1.95)
"""Fractional Brownian motion, m = t^α; diffusion is α = 1. Beyond the range it is still, or straight."""
PERSISTENT = Motion("persistence", _persistent, float(np.log(0.1)), float(np.log(2 * LONGEST)))
"""Walk with a persistence time P; its parameter is log P. Far below an interval it is diffusion."""

CONFINED = Motion("confined", _confined, float(np.log(0.5)), float(np.log(2 * LONGEST)))
"""Diffusion that is drawn back to a place within a time T; its parameter is log T. Far above, it is free."""


def whitening(motion: Motion, parameter: float, ratio: float, length: int) -> Floats | None:
    """Inverse of the lower Cholesky factor of the covariance of `length` steps for s = 1.

    Its leading blocks whiten shorter pieces. None if there is no such covariance.

    Parameters
    ----------
    motion : Motion
    parameter : float
    ratio : float
        ρ.
    length : int
    """
    mean = motion.displacement(np.arange(length + 1, dtype=np.float64), parameter)
    row = np.concatenate([[mean[1]], np.diff(mean, 2) / 2]) / mean[1]
    row[0] += 2 * ratio
    row[1:2] -= ratio
    try:
        lower = cholesky(toeplitz(row), lower=True)
    except LinAlgError:
        return None
    return np.asarray(lapack.dtrtri(lower, lower=1)[0])  # threads of solve_triangular wait for one another


def squares_and_logdets(white: Floats, pieces: Pieces, axis: int) -> tuple[Floats, Floats]:
    """Sum of squares of the whitened steps of each track along an axis, and log determinant; (T,) each."""
    white = white[: len(pieces.step), : len(pieces.step)]
    inside = np.arange(len(pieces.step))[:, None] < pieces.length
    square = (np.square(white @ pieces.step[:, :, axis]) * inside).sum(axis=0)
    logdet = np.concatenate([[0.0], -2 * np.cumsum(np.log(np.diag(white)))])[pieces.length]
    sums = [np.bincount(pieces.owner, values, pieces.count) for values in (square, logdet)]
    return np.asarray(sums[0], np.float64), np.asarray(sums[1], np.float64)


@dataclass(frozen=True, eq=False)
class Sums:
    """Weighted second moments of pieces: all that the likelihood of many tracks together depends on.

    Parameters
    ----------
    moment : (A, L, L, L) float64 array
        For each axis and n: sum of x xᵀ over pieces of more than n steps.
    longer : (L,) float64 array
        Weight of the pieces of more than n steps.
    """

    moment: Floats
    longer: Floats

    @classmethod
    def of(cls, pieces: Pieces, weight: Floats) -> Sums:
        """Second moments of pieces whose tracks have the weights (T,)."""
        size, _, axes = pieces.step.shape
        moment, longer = np.zeros((axes, size, size, size)), np.zeros(size)
        of_piece = weight[pieces.owner]
        for length in np.unique(pieces.length):
            some = pieces.length == length
            longer[length - 1] = of_piece[some].sum()
            step = pieces.step[:, some] * np.sqrt(of_piece[some])[:, None]
            moment[:, length - 1] = np.einsum("ipa,jpa->aij", step, step, optimize=True)
        upwards = np.cumsum(moment[:, ::-1], axis=1)[:, ::-1]
        return cls(np.ascontiguousarray(upwards), np.cumsum(longer[::-1])[::-1])

    def square_and_logdet(self, white: Floats, axis: int) -> tuple[float, float]:
        """As `squares_and_logdets`, of all tracks together."""
        square = (np.matmul(white[:, None, :], self.moment[axis])[:, 0] * white).sum()
        return float(square), float(-2 * (np.log(np.diag(white)) * self.longer).sum())
