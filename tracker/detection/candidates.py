"""Candidates of a frame, by the filter that is whitened with what is left without the sure ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .band import Band
from .joint import Candidates, Spread, fit_together, light_of, resolved
from .noise import Noise
from .spectrum import Filter, Maxima, Modes, Transform, spectrum
from .stabilise import Ground

_PASSES = 4  # of the spectrum, at most: of the frame, and of what is left without the sure spots
_MORE = 1.1  # times as many sure spots as before, without which the passes end
_KEPT = 0.05  # share of the spots' power that may be left by a profile that differs
_TAIL = 3.0  # standard deviations of minima whose depths say how wide noise's tail is
_TAIL_PRIOR = 4  # minima of the computed depth beside them, a prior


class Seen(NamedTuple):
    """Candidates of a frame, and what they were found by.

    Parameters
    ----------
    place : (n, 3) float64 array
        In voxels.
    height : (n,) float64 array
        By which each stands out of the background, in units of the camera's noise.
    significance : (n,) float64 array
        In standard deviations, without what the tail of noise is wider.
    sure : (n,) bool array
        Where less than one maximum of noise is expected.
    maxima : Maxima
        Those of noise.
    least : float
        The significance that was looked down to.
    ground : Ground
    smooth : callable
        Uneven light of a frame without spots, by the Wiener filter (Wiener 1949).
    """

    place: NDArray[np.float64]
    height: NDArray[np.float64]
    significance: NDArray[np.float64]
    sure: NDArray[np.bool_]
    maxima: Maxima
    least: float
    ground: Ground
    smooth: Callable[[NDArray[np.float32]], NDArray[np.float32]]

    def of(self, rows: NDArray[np.bool_]) -> Seen:
        """Some of them."""
        return self._replace(
            place=self.place[rows],
            height=self.height[rows],
            significance=self.significance[rows],
            sure=self.sure[rows],
        )


def look(frame: NDArray[np.float32], sigma: NDArray[np.float64], noise: Noise, how: Transform) -> Seen:
    """Find the candidates of a frame (Z, Y, X) in units of the camera's noise; sigma: spots' widths."""
    band = Band.of(frame.shape, sigma)
    values, sigma = band.down(frame, how), sigma * band.scale
    seen, ground, filter_, tail, least = _in_passes(values, sigma, band.noise(noise), how)
    significance = seen.significance / tail
    return Seen(
        band.place(seen.place),
        seen.amplitude / (filter_.scale * band.gain),
        significance,
        significance > filter_.least(),
        filter_.maxima,
        least,
        Ground(band.up(ground, how) / np.float32(band.gain), noise),
        lambda light: how.back(band.padded(band.cut(how.forward(light)) * filter_.wiener)),
    )


def _in_passes(
    values: NDArray[np.float32], sigma: NDArray[np.float64], noise: Noise, how: Transform
) -> tuple[Candidates, NDArray[np.float32], Filter, float, float]:
    """Candidates, light without them, the last filter, the width of noise's tail, the least significance."""
    mean = np.float32(values.mean(dtype=np.float64))
    modes, ground = Modes(values.shape), Ground(np.full(values.shape, mean), noise)
    floor = 1.0 if noise.given else 0.0
    first = spectrum(modes, how.forward(values - mean), floor)
    filter_ = Filter(modes, sigma, first)
    bright = Candidates.none()
    for turn in range(_PASSES):
        seen, rest, least = fit_together(values - mean, ground, filter_, how, bright)
        before, bright = len(bright.place), seen.of(seen.significance > filter_.least())
        without = values - light_of(ground, bright, filter_)
        ground = Ground(how.back(how.forward(without) * filter_.wiener), noise)
        if turn == _PASSES - 1 or (turn and len(bright.place) <= _MORE * before):
            break
        left = spectrum(modes, how.forward(without - mean), floor)
        with np.errstate(invalid="ignore"):
            power = left + _KEPT * np.maximum(first - left, 0)
        power[0, 0, 0] = np.inf
        height = bright.amplitude / filter_.scale
        filter_ = Filter(modes, sigma, power)
        bright = replace(bright, amplitude=height * filter_.scale)
    seen = resolved(seen, sigma, sure=seen.significance > filter_.least())
    return seen, ground.values, filter_, _tail(*rest, filter_), least


def _tail(rest: NDArray[np.float32], noise: Spread, filter_: Filter) -> float:
    """How much wider than a Gaussian's the tail of the minima is, at least 1."""
    _, deep = noise.maxima(-rest, _TAIL)
    u = np.linspace(_TAIL, _TAIL + 5, 200)
    expected = float(np.average(u**2 - _TAIL**2, weights=-np.gradient(filter_.maxima.above(u))))
    mean = ((deep**2 - _TAIL**2).sum() + _TAIL_PRIOR * expected) / (len(deep) + _TAIL_PRIOR)
    return float(np.sqrt(max(1.0, mean / expected)))
