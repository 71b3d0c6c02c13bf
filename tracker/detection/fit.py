"""The last fit of spots, in grey values: positions, amplitudes, sizes and their standard errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compute.tolerances import LEAST
from .candidates import CandidateSpots
from .fit_cpu import AMPLITUDE, DEPTH, LEVEL, PARAMETERS, REACH, SIZE, X, errors_of, fit_spots, without
from .stabilise import Noise, grey

SWEEPS = (4, 1, 1, 1, 1, 1)
"""Guard: sweeps of the fit; before each group the background is estimated without the spots as they are."""
_MEASURED = 0.2
"""Error level: share of the information on a size that is not the prior's, below which it is not measured."""
_FAR = 0.35
"""Prior: widths that a spot moves: in a crowd its response places it better than a fit that runs away."""
SIZES = 0.12
"""Prior: standard deviation of the logarithm of a spot's size."""
_LEAST_AMPLITUDE = 0.1
"""Guard: least amplitude at the start, in standard deviations of the camera's noise."""
STEPS = np.array([0.3, 0.3, 0.3, 0.5, np.inf, 0.2, 0.2])
"""Guard: largest steps of a sweep: of a position in widths, of an amplitude relative to it, of a level (no
limit), of the logarithms of sizes."""


class FittedSpots(NamedTuple):
    """Spots in grey values.

    Parameters
    ----------
    position : (n, 3) float64 array
        z, y, x in voxels.
    position_error : (n, 3) float64 array
        Their standard errors.
    amplitude : (n,) float64 array
    background : (n,) float64 array
        Light without the spots, at each of them.
    log_width, log_depth : (n,) float64 array
        Logarithms of the widths in the plane and along z, relative to the common ones.
    log_width_error, log_depth_error : (n,) float64 array
        Their standard errors.
    misfit : (n,) float64 array
        Reduced chi-square.
    """

    position: NDArray[np.float64]
    position_error: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    background: NDArray[np.float64]
    log_width: NDArray[np.float64]
    log_depth: NDArray[np.float64]
    log_width_error: NDArray[np.float64]
    log_depth_error: NDArray[np.float64]
    misfit: NDArray[np.float64]

    @staticmethod
    def of_columns(
        spots: NDArray[np.float64], error: NDArray[np.float64], background: NDArray[np.float64]
    ) -> FittedSpots:
        """From what kernels fit: parameters (n, 7), and errors (n, 6) as `errors_of` returns them."""
        width_error, depth_error, misfit = error[:, X + 1 :].T
        return FittedSpots(
            spots[:, : X + 1], error[:, : X + 1], spots[:, AMPLITUDE], background,
            spots[:, SIZE], spots[:, DEPTH], width_error, depth_error, misfit,
        )  # fmt: skip

    def of(self, rows: NDArray) -> FittedSpots:
        """Some of them, by a mask or in an order."""
        return FittedSpots(*(values[rows] for values in self))

    @staticmethod
    def none() -> FittedSpots:
        """No spots."""
        return FittedSpots(*(np.empty((0, 3)),) * 2, *(np.empty(0),) * 7)

    @staticmethod
    def joined(parts: Iterable[FittedSpots]) -> FittedSpots:
        """All spots of some parts of a frame."""
        return FittedSpots(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def parameters(self) -> NDArray[np.float64]:
        """(n, 7): as kernels take them, without levels."""
        level = np.zeros(len(self.amplitude))
        return np.column_stack([self.position, self.amplitude, level, self.log_width, self.log_depth])

    def growth(self) -> tuple[float, float]:
        """Logarithms by which spots are wider than the common width, in the plane and along z: medians.

        They are weighted with their information and without the prior on them.
        """
        return _median(self.log_width, self.log_width_error), _median(self.log_depth, self.log_depth_error)


def _median(size: NDArray[np.float64], error: NDArray[np.float64]) -> float:
    measured, free, weight = without_prior(size, error)
    return weighted_median(free, weight) if measured.any() else 0.0


def without_prior(
    size: NDArray[np.float64], error: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Which sizes are measured, these without the prior on them, and their information."""
    information = 1 / np.maximum(error, 1e-6) ** 2
    own = np.maximum(information - 1 / SIZES**2, 0)
    measured = own > _MEASURED * information
    return measured, (size * information)[measured] / own[measured], own[measured]


def weighted_median(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The value below which half of the weight is."""
    order = np.argsort(values)
    sums = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(sums, sums[-1] / 2)]])


def limits_of(
    sigma: NDArray[np.float64], noise: Noise
) -> tuple[tuple[float, ...], NDArray[np.float64], NDArray[np.float64]]:
    """What `fit_spots` needs besides light: the camera's noise, the prior (7,), and the largest steps (7,).

    The prior on amplitude and level is negligible beside the information of a voxel.
    """
    wide = np.where(sigma > 0, sigma, 1.0)
    prior = np.array([*1 / wide**2, *[LEAST / noise.least] * 2, *[1 / SIZES**2] * 2])
    return (*noise.line, noise.saturation), prior, STEPS * [*wide, 1, 1, 1, 1]


def fit_in_grey(
    voxels: NDArray[np.float32], candidates: CandidateSpots, sigma: NDArray[np.float64]
) -> FittedSpots:
    """Fit the candidates in grey values.

    Parameters
    ----------
    voxels : (Z, Y, X) float32 array
        Grey values; NaN where nothing was measured.
    candidates : CandidateSpots
        Those found in these voxels.
    sigma : (3,) float64 array
        Widths of spots in voxels.
    """
    noise, start = candidates.background.noise, candidates.position
    camera, prior, most = limits_of(sigma, noise)
    whole, light = grey(candidates.values, noise), candidates.background.grey
    spots = np.zeros((len(start), PARAMETERS))
    spots[:, : X + 1] = start
    peaks = candidates.background.peaks(start, candidates.height)
    spots[:, AMPLITUDE] = np.maximum(peaks, _LEAST_AMPLITUDE * np.sqrt(noise.least))
    for number, sweeps in enumerate(SWEEPS):
        if number < 2:
            moving = np.ones(len(spots), bool)
        if number:
            rest = without(whole, spots[candidates.significant], sigma, REACH, noise.line)
            light = grey(candidates.smoothed(rest), noise)
        model = light.copy()
        fit_spots(voxels, model, spots, start, sigma, camera, REACH, prior, most, _FAR, sweeps, moving)
    error = errors_of(voxels, model, spots, sigma, camera, REACH, prior)
    under = light[tuple(np.rint(start).astype(int).T)].astype(np.float64)
    return FittedSpots.of_columns(spots, error, under + spots[:, LEVEL])
