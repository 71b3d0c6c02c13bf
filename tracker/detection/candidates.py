"""Candidates of a frame, by the filter that is whitened with the residual of the significant ones."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .joint import JointFit, Peaks, fit_together
from .spectrum import Filter, Modes, spectrum
from .stabilise import Background, Noise, stabilised, with_peaks_restored
from .transform import Band, CosineTransform

_PASSES = 4
"""Guard: measurements of the spectrum: of the frame, and of its residuals without the significant spots."""
_MORE = 1.1
"""Guard: ratio of significant spots to those before, up to which the passes end."""
_KEPT = 0.05
"""Prior: share of the spots' power that remains in the residual, as their profiles differ."""
TAIL = 3.0
"""Error level: standard deviations of the minima whose depths give the width of noise's tail."""
_TAIL_PRIOR = 4
"""Prior: weight of the computed depth, in minima."""


class CandidateSpots(NamedTuple):
    """Candidates of a frame, and the light that they were found in.

    Parameters
    ----------
    position : (n, 3) float64 array
        In voxels.
    height : (n,) float64 array
        By which each stands out of the background, in units of the camera's noise.
    significance : (n,) float64 array
        In standard deviations of the noise, whose tail may be wider than a Gaussian's.
    significant : (n,) bool array
        Where less than one maximum of noise is expected.
    least : float
        Least significance of a candidate.
    values : (Z, Y, X) float32 array
        The frame in units of the camera's noise, without gaps, saturated peaks restored.
    background : Background
    band : Band
    filter_ : Filter
        Of the frame of this band.
    """

    position: NDArray[np.float64]
    height: NDArray[np.float64]
    significance: NDArray[np.float64]
    significant: NDArray[np.bool_]
    least: float
    values: NDArray[np.float32]
    background: Background
    band: Band
    filter_: Filter

    def of(self, rows: NDArray[np.bool_]) -> CandidateSpots:
        """Some of them."""
        return self._replace(
            position=self.position[rows],
            height=self.height[rows],
            significance=self.significance[rows],
            significant=self.significant[rows],
        )

    def smoothed(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Uneven light of this frame without spots, in the band and no finer than a spot."""
        dct, share = self.filter_.dct, self.filter_.wiener
        return dct.back(dct.forward(values, share.shape) * share, self.band.shape)


def find_candidates(
    voxels: NDArray[np.float32], sigma: NDArray[np.float64], noise: Noise, dct: CosineTransform
) -> CandidateSpots:
    """Find the candidates of a frame.

    Parameters
    ----------
    voxels : (Z, Y, X) float32 array
        Grey values; NaN where nothing was measured.
    sigma : (3,) float64 array
        Widths of spots in voxels.
    noise : Noise
    dct : CosineTransform
    """
    restored = with_peaks_restored(voxels, sigma, noise.saturation)
    frame = stabilised(restored, noise)
    band = Band.of(frame.shape, sigma)
    mean = np.float32(frame.mean(dtype=np.float64))
    modes = dct.forward(frame - mean, band.small)
    values = frame - mean if band.small == band.shape else dct.back(modes)
    dark = Background(np.full(values.shape, mean * band.gain, np.float32), noise.scaled(band.gain))
    fit, uneven, filter_ = _in_passes(values, modes, sigma * band.scale, dark, dct)
    deep = fit.noise.minima(fit.response, TAIL)
    excess = float((deep**2 - TAIL**2).sum())
    significance = fit.peaks.significance / tail_of(excess, len(deep), filter_.maxima.above(tail_heights()))
    return CandidateSpots(
        band.in_frame(fit.peaks.position),
        fit.peaks.amplitude / (filter_.scale * band.gain),
        significance,
        significance > filter_.threshold(),
        fit.least,
        frame,
        Background(dct.back(uneven, frame.shape) + mean, noise),
        band,
        filter_,
    )


_modes_of = lru_cache(8)(Modes)
"""Wave numbers, which the frames of a movie share."""


def _in_passes(
    values: NDArray[np.float32],
    modes: NDArray[np.float32],
    sigma: NDArray[np.float64],
    dark: Background,
    dct: CosineTransform,
) -> tuple[JointFit, NDArray[np.float32], Filter]:
    """The last joint fit of a frame, modes of its uneven light, and the filter whitened without spots.

    Values and modes are without the mean, `dark`, which would drown a dim frame in rounding.
    """
    numbers, floor, background = _modes_of(values.shape), 1.0 if dark.noise.given else 0.0, dark
    first = spectrum(numbers, modes, floor)
    filter_ = Filter(numbers, sigma, first, dct)
    significant = Peaks.none()
    for turn in range(_PASSES):
        fit = fit_together(values, background, filter_, significant, modes)
        before = len(significant.position)
        significant = fit.peaks.of(fit.peaks.significance > filter_.threshold())
        without = dct.forward(significant.taken_out_of(values, background, filter_))
        uneven = without[tuple(map(slice, filter_.wiener.shape))] * filter_.wiener
        if turn == _PASSES - 1 or (turn and len(significant.position) <= _MORE * before):
            break
        background = Background(dct.back(uneven, values.shape) + dark.values, dark.noise)
        residual = spectrum(numbers, without, floor)
        with np.errstate(invalid="ignore"):
            power = residual + _KEPT * np.maximum(first - residual, 0)
        power[0, 0, 0] = np.inf
        height = significant.amplitude / filter_.scale
        filter_ = Filter(numbers, sigma, power, dct)
        significant = replace(significant, amplitude=height * filter_.scale)
    return fit, uneven, filter_


def tail_heights() -> NDArray[np.float64]:
    """Heights at which the expected number of minima is taken, to where there are none."""
    return np.linspace(TAIL, TAIL + 5, 200)


def tail_of(excess: ArrayLike, count: ArrayLike, above: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much wider than a Gaussian's the tail of the minima is, at least 1: of a frame or of several.

    Parameters
    ----------
    excess, count : (...) array
        Sum of depth² - `TAIL`² over the minima deeper than `TAIL`, and their number.
    above : (..., heights) float64 array
        Expected number of minima deeper than each of `tail_heights`.
    """
    beyond = np.broadcast_to(tail_heights() ** 2 - TAIL**2, above.shape)
    expected: NDArray[np.float64] = np.average(beyond, -1, weights=-np.gradient(above, axis=-1))
    mean = (np.asarray(excess) + _TAIL_PRIOR * expected) / (np.asarray(count) + _TAIL_PRIOR)
    tail: NDArray[np.float64] = np.sqrt(np.maximum(1.0, mean / expected))
    return tail
