"""The last fit of spots, in grey values: places, amplitudes, levels and sizes with their standard errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .candidates import Seen
from .noise import Noise
from .position_cpu import AMPLITUDE, DEPTH, SIZE, X, Z, errors_of, fit_spots, render
from .stabilise import grey, stabilised

_REACH = 3.5  # widths about a spot in which it is fitted
_TURNS = (4, 1, 1, 1, 1, 1)  # of the fit; before each the background is estimated without spots as they are
_MEASURED = 0.2  # share of the information on a size that is not the prior, below which it says nothing
_FAR = 0.35  # widths that a spot moves: in a crowd its response places it better than a fit that runs away
_SIZES = 0.12  # standard deviation of the logarithm of a spot's size, a prior
_STEPS = np.array([0.3, 0.3, 0.3, 0.5, np.inf, 0.2, 0.2])  # largest: widths, share, grey values, logarithms


class Fitted(NamedTuple):
    """Spots in grey values.

    Parameters
    ----------
    spots : (n, 7) float64 array
        z, y, x, amplitude, level beside the background, logarithms of the sizes in the plane and along z.
    error : (n, 7) float64 array
        Standard errors of z, y, x, amplitude and sizes, and the reduced chi-square.
    light : (n,) float64 array
        Background at each spot.
    """

    spots: NDArray[np.float64]
    error: NDArray[np.float64]
    light: NDArray[np.float64]

    def of(self, rows: NDArray[np.bool_]) -> Fitted:
        """Some of them."""
        return Fitted(self.spots[rows], self.error[rows], self.light[rows])

    def growth(self, kept: NDArray[np.bool_]) -> tuple[float, float]:
        """Logarithms by which spots are wider than the common width, in the plane and along z: medians.

        They are weighted with their information and without the prior on them.
        """
        plane, deep = (
            _median(self.spots[kept, column], self.error[kept, column - 1]) for column in (SIZE, DEPTH)
        )
        return plane, deep


def _median(size: NDArray[np.float64], error: NDArray[np.float64]) -> float:
    information = 1 / np.maximum(error, 1e-6) ** 2
    own = np.maximum(information - 1 / _SIZES**2, 0)
    measured = own > _MEASURED * information
    if not measured.any():
        return 0.0
    free, weight = (size * information)[measured] / own[measured], own[measured]
    order = np.argsort(free)
    sums = np.cumsum(weight[order])
    return float(free[order[np.searchsorted(sums, sums[-1] / 2)]])


def fit_in_grey(
    voxels: NDArray[np.float32],
    values: NDArray[np.float32],
    seen: Seen,
    sigma: NDArray[np.float64],
    noise: Noise,
) -> Fitted:
    """Fit the candidates in grey values.

    Parameters
    ----------
    voxels : (Z, Y, X) float32 array
        Grey values; NaN where nothing was measured.
    values : (Z, Y, X) float32 array
        The same in units of the camera's noise, without gaps.
    seen : Seen
    sigma : (3,) float64 array
        Widths of spots in voxels.
    noise : Noise
    """
    at = tuple(np.rint(seen.place).astype(int).T)
    wide = np.where(sigma > 0, sigma, 1.0)
    prior = np.array([*1 / wide**2, 1e-6 / noise.least, 1e-6 / noise.least, *[1 / _SIZES**2] * 2])
    most = _STEPS * [*wide, 1, 1, 1, 1]
    line = np.array([noise.base, noise.slope, noise.least, noise.top])
    whole, light = grey(values, noise), seen.ground.grey
    spots = np.zeros((len(seen.place), 7))
    spots[:, Z : X + 1] = seen.place
    spots[:, AMPLITUDE] = np.maximum(seen.ground.peaks(at, seen.height), 0.1 * np.sqrt(noise.least))
    for number, turns in enumerate(_TURNS):
        if number:
            fitted = render(voxels.shape, spots[seen.sure], sigma, _REACH)
            light = grey(seen.smooth(stabilised(whole - fitted, noise)), noise)
        model = light.copy()
        fit_spots(voxels, model, spots, seen.place, sigma, line, _REACH, prior, most, _FAR, turns)
    error = errors_of(voxels, model, spots, sigma, line, _REACH, prior)
    return Fitted(spots, error, light[at].astype(np.float64))
