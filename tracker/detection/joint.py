"""Joint fit of all spots of a frame in the response of a whitened matched filter.

The response at the positions x_i of the candidates is Σ_j κ(x_i - x_j) A_j, κ the response to one spot. Their
amplitudes A >= 0 are fitted together, the maxima of the residual join them, and the weakest of neighbours
leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .fit_cpu import REACH
from .joint_cpu import joined, resolved, taken_out
from .response_cpu import local_scales, peaks_above, quantile, scales_at, vertices
from .spectrum import Filter
from .stabilise import Background

_ROUNDS = 12
"""Guard: rounds in which candidates join."""
_NEW = 0.01
"""Guard: share of candidates that are new, below which the rounds end."""
_BELOW = 2.0
"""Prior: standard deviations below 0 at which the scale of noise is read, where no spot is."""
_UNIT_PRIOR = 2.0
"""Prior: weight of a scale of 1, in maxima above that height."""
_SAMPLED_PEAK = 0.75
"""Guard: share of a maximum between voxels that a voxel has at least."""
_SAMPLED = 250_000
"""Guard: voxels of which a quantile is taken."""
_WEAKEST = 8
"""Guard: times that the weakest of neighbours leave in a round."""
_SWEEPS = 30
"""Guard: sweeps of Gauss-Seidel."""
_FALSE = 0.5
"""Error level: share of noise among the candidates; the last one that is kept has .4."""
PROFILE = 0.1
"""Prior: share of its light by which a spot may differ from the profile."""
_NEIGHBOURS = 10
"""Guard: neighbours that widen an error; less overlap than a profile may differ by is none."""
_RIDGE = 0.02
"""Guard: ridge of the matrix of their overlaps."""
WINDOW = 4.0
"""Prior: width of the window of the local noise scale, in widths of a spot."""
_EVERYWHERE = 0.5
"""Prior: weight of the noise scale of the whole frame besides the local one."""
_LEAST = 0.85
"""Prior: least local noise scale relative to that of the frame: in a window less is chance."""
_FLOOR = 0.8
"""Prior: least noise scale relative to the computed one: less is light that was taken out with candidates."""
_SAME = 0.33
"""Prior: overlap of neighbours of which the weaker leaves."""
_SPARROW = 2.0
"""Prior: distance in widths from which two spots have a maximum each."""
ONE_SPOT = 1.0
"""Prior: distance in widths below which two spots are one, by an eighth wider: so much do widths differ."""
_STEP = 0.4
"""Guard: widths that a candidate moves in a round."""
_MOST = 1.5
"""Guard: largest amplitude relative to the largest response."""


@dataclass(frozen=True, eq=False)
class Peaks:
    """Spots in the response.

    Parameters
    ----------
    position : (n, 3) float64 array
        In voxels.
    amplitude, error : (n,) float64 array
        Response to each spot alone, and its standard error.
    """

    position: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    error: NDArray[np.float64]

    @property
    def significance(self) -> NDArray[np.float64]:
        """(n,): amplitudes over their errors."""
        return self.amplitude / self.error

    def of(self, rows: NDArray[np.bool_]) -> Peaks:
        """Some of them."""
        return Peaks(self.position[rows], self.amplitude[rows], self.error[rows])

    def taken_out_of(
        self, values: NDArray[np.float32], background: Background, filter_: Filter
    ) -> NDArray[np.float32]:
        """A frame in units of the camera's noise without their light on its background."""
        out: NDArray[np.float32] = taken_out(
            values, background.values, background.grey, self.position, self.amplitude / filter_.scale,
            filter_.sigma, REACH, background.noise.line,
        )  # fmt: skip
        return out

    @staticmethod
    def none() -> Peaks:
        """No spots."""
        return Peaks(np.empty((0, 3)), np.empty(0), np.empty(0))


def local_maxima(values: NDArray[np.float32], low: float) -> NDArray[np.int64]:
    """(n, 3) int64: voxels above `low` that no neighbour exceeds; among equal neighbours, the first."""
    out: NDArray[np.int64] = peaks_above(values, np.float32(1), np.float32(low))
    return out


def maxima_above(
    values: NDArray[np.float32], low: float, sign: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions (n, 3), heights (n,) of maxima above `low` between voxels; with a sign of -1, of minima."""
    lower, up = np.float32(_SAMPLED_PEAK * low), np.float32(sign)
    position, height = vertices(values, up, peaks_above(values, up, lower))
    return position[height > low], height[height > low]


def noise_scale(response: NDArray, filter_: Filter) -> float:
    """Standard deviation of noise, from the quantile two of them below 0, where no spot is; 1 a priori."""
    lower = quantile(response, max(1, response.size // _SAMPLED), float(ndtr(-_BELOW)))
    measured = -float(lower) / _BELOW
    maxima = float(filter_.maxima.above(_BELOW))
    return max(float(np.sqrt((maxima * measured**2 + _UNIT_PRIOR) / (maxima + _UNIT_PRIOR))), 1e-9)


class NoiseScale(NamedTuple):
    """Standard deviation of noise around each position, in blocks.

    Parameters
    ----------
    blocks : (Z, Y, X) float64 array
    size : (3,) int64 array
        Voxels of a block.
    """

    blocks: NDArray[np.float64]
    size: NDArray[np.int64]

    @staticmethod
    def of(response: NDArray[np.float32], filter_: Filter) -> NoiseScale:
        """From the negative side of a response: two blocks a standard deviation of the window."""
        everywhere = noise_scale(response, filter_)
        size = np.maximum(1, np.rint(WINDOW / 2 * filter_.sigma)).astype(np.int64)
        widths, least = WINDOW * filter_.sigma / size, max(_LEAST * everywhere, _FLOOR)
        return NoiseScale(local_scales(response, size, widths, everywhere, _EVERYWHERE, least), size)

    def at(self, position: NDArray) -> NDArray[np.float64]:
        """(n,): linear between the middles of blocks."""
        out: NDArray[np.float64] = scales_at(self.blocks, self.size, position)
        return out

    def minima(self, response: NDArray[np.float32], least: float) -> NDArray[np.float64]:
        """(n,) depths of minima, in units of the noise, of at least this depth."""
        position, depth = maxima_above(response, least * float(self.blocks.min()), -1.0)
        depth /= self.at(position)
        return depth[depth > least]


class JointFit(NamedTuple):
    """What a joint fit finds in a frame.

    Parameters
    ----------
    peaks : Peaks
        The candidates, each besides all others; of those nearer than the Sparrow limit the significant ones.
    response : (Z, Y, X) float32 array
        Response without the significant ones, over the boundary gain.
    noise : NoiseScale
        Of this response.
    least : float
        Significance of the weakest candidates.
    """

    peaks: Peaks
    response: NDArray[np.float32]
    noise: NoiseScale
    least: float


def fit_together(
    values: NDArray[np.float32],
    background: Background,
    filter_: Filter,
    start: Peaks,
    modes: NDArray[np.float32] | None = None,
) -> JointFit:
    """Fit all spots of a frame together.

    Parameters
    ----------
    values : (Z, Y, X) float32 array
        A frame in units of its camera's noise.
    background : Background
        Its light without spots.
    filter_ : Filter
    start : Peaks
        The significant spots of the pass before, with which the rounds begin.
    modes : (Z, Y, X) float32 array, optional
        Cosine transform of the frame.
    """

    def without(spots: Peaks) -> NDArray[np.float32]:
        if modes is not None and not len(spots.position):
            return filter_.respond(modes)
        return filter_.respond(filter_.dct.forward(spots.taken_out_of(values, background, filter_)))

    def noise_without(significant: NDArray[np.bool_]) -> tuple[NDArray[np.float32], NoiseScale]:
        """The response without the significant ones, and its noise: fitted noise would take noise away."""
        rest = residual if significant.all() else without(peaks.of(significant))
        response = rest / filter_.boundary_gain
        return response, NoiseScale.of(response, filter_)

    peaks = _resolved(start, filter_.sigma, significant=False)
    residual, significant = without(peaks), np.ones(len(peaks.position), bool)
    response, noise = noise_without(significant)
    for turn in range(_ROUNDS):
        least = filter_.threshold(max(1.0, _FALSE * float(significant.sum())))
        before, peaks = len(peaks.position), _joined(peaks, residual, filter_, noise, least)
        if not len(peaks.position):
            break
        significant, residual = peaks.significance > filter_.threshold(), without(peaks)
        last = turn == _ROUNDS - 1 or (turn > 0 and len(peaks.position) - before <= _NEW * before)
        if turn == 0 or last:
            (response, now), earlier = noise_without(significant), noise.at(peaks.position)
            peaks, noise = replace(peaks, error=peaks.error * now.at(peaks.position) / earlier), now
        if last:
            break
    peaks = _resolved(peaks, filter_.sigma, peaks.significance > filter_.threshold())
    return JointFit(peaks, response, noise, least)


def _resolved(peaks: Peaks, sigma: NDArray[np.float64], significant: NDArray[np.bool_] | bool) -> Peaks:
    """Without the dimmer of spots nearer than the Sparrow limit, unless significant: they may be one."""
    return peaks.of(resolved(peaks.position, peaks.amplitude, _SPARROW * sigma) | significant)


def _joined(
    before: Peaks, residual: NDArray[np.float32], filter_: Filter, noise: NoiseScale, least: float
) -> Peaks:
    """Maxima of the residual join the candidates, and the weakest of neighbours leave until all stand out.

    A Gauss-Newton step from the candidates `before`, whose light is taken out of the response.
    """
    limits = (_WEAKEST, _SWEEPS, _MOST, _SAME, PROFILE, _NEIGHBOURS, _RIDGE, _STEP, _SAMPLED_PEAK)
    response, half = filter_.kernel
    return Peaks(*joined(
        residual, filter_.boundary_gain, *noise, least, before.position, before.amplitude, response, half,
        filter_.curvature, filter_.sigma, ONE_SPOT * filter_.sigma, np.array(limits),
    ))  # fmt: skip
