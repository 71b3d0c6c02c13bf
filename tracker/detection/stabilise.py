"""A frame in units of its camera's noise: the Anscombe transform of variance base + slope · mean.

y = 2 / slope · sqrt(base + slope · x) has variance 1 (Anscombe, Biometrika 35, 246, 1948). Below the least
variance it goes on as a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.ndimage import binary_opening, gaussian_filter
from scipy.special import gamma

from ..compute.tolerances import NEGLIGIBLE
from .fit_cpu import AMPLITUDE, PARAMETERS, REACH, X, render
from .prepare import SAMPLED
from .stabilise_cpu import to_grey, to_noise

WIDEST = 3.0
"""Prior: widths of the widest spot, cut by saturation or out of focus."""
_FILL = 2.0
"""Prior: width in pixels of the window from which voxels that were not measured are filled."""
_CONSTANT_SHARE = 0.02
"""Prior: least share of voxels with the least value from which its fields were not measured."""
_CONSTANT_SIZE = 9
"""Prior: pixels of such a field along y and x: photon counts are hardly ever all alike over that."""
_HOT = 8.0
"""Error level: deviations by which a hot voxel exceeds its neighbours; a true spot of .7 voxels reaches 5."""
STANDS_OUT = 5.0
"""Error level: standard deviations that noise hardly reaches; nine bodies in ten do."""
_DITHER = np.float32(4.0)
"""Prior: noise that such images get, in the least noise: 1/250 of their range."""


class Noise(NamedTuple):
    """The camera's noise: the variance of a voxel is base + slope x mean, at least `least`.

    Parameters
    ----------
    base, slope, least : float
        Squared grey values; grey values; squared grey values.
    saturation : float
        Grey value at which the camera saturates; the true value may be larger.
    given : bool
        Whether the camera is given: no mode then has less noise than it.
    """

    base: float
    slope: float
    least: float
    saturation: float
    given: bool = False

    @property
    def line(self) -> tuple[float, float, float]:
        """Base, slope and least variance."""
        return self.base, self.slope, self.least

    @property
    def missing(self) -> bool:
        """Whether images have no noise, as computed ones: theirs would be that of rounding."""
        return not self.given and self.slope == 0 and self.base < NEGLIGIBLE * self.least

    def scaled(self, gain: float) -> Noise:
        """Noise of grey values that are larger by a gain, as are values in its units."""
        return self._replace(slope=self.slope / gain, saturation=self.saturation * gain)


def masked(image: NDArray[np.float32], noise: Noise) -> NDArray[np.bool_]:
    """Voxels that were not measured: not finite, in constant regions or planes, or hot."""
    dead = ~np.isfinite(image)
    if dead.all():
        return dead
    low = image == np.fmin.reduce(image, axis=None)
    constant = low.mean() >= _CONSTANT_SHARE and min(image.shape[1:]) >= _CONSTANT_SIZE
    flat = [bool(plane.max() == plane.min()) for plane in image]
    mean = float(np.nanmean(image.ravel()[:: max(1, image.size // SAMPLED)]))
    for number, plane in enumerate(image):
        if constant:
            dead[number] |= binary_opening(low[number], np.ones((_CONSTANT_SIZE, _CONSTANT_SIZE), bool))
        if flat[number] and not all(flat):
            dead[number] = True
        if min(plane.shape) >= 5:
            dead[number] |= _hot(plane, noise, mean)
    return dead


def _hot(plane: NDArray[np.float32], noise: Noise, least_mean: float) -> NDArray[np.bool_]:
    """Hot voxels: single voxels far above their neighbours in the plane, which receive none of the excess."""
    hot = np.zeros(plane.shape, bool)
    side = np.maximum(plane[1:-1, :-2], plane[1:-1, 2:])
    y, x = np.nonzero(plane[1:-1, 1:-1] - side > _HOT * np.sqrt(noise.least))
    ring = np.stack([plane[y + i // 3, x + i % 3] for i in range(9) if i != 4])
    top, mean = ring.max(axis=0), np.maximum(ring.mean(axis=0), least_mean)
    deviation = np.sqrt(np.maximum(noise.base + noise.slope * mean, noise.least))
    excess = plane[y + 1, x + 1] - top
    alone = top - ring.min(axis=0) < STANDS_OUT * deviation
    single = (excess > _HOT * deviation) & alone
    hot[y[single] + 1, x[single] + 1] = True
    return hot


def stabilised(voxels: NDArray[np.float32], noise: Noise) -> NDArray[np.float32]:
    """Values whose camera noise has variance 1; voxels that are not finite get those about them.

    Images without noise get some, the same for the same shape: filters are whitened by it.

    Examples
    --------
    >>> light = np.random.default_rng(0).poisson(np.linspace(20, 200, 300), (1, 300, 300)).astype(np.float32)
    >>> bool(abs(np.diff(stabilised(light, Noise(0.0, 1.0, 1.0, np.inf)), axis=1).var() / 2 - 1) < 0.05)
    True
    """
    out = np.empty(voxels.shape, np.float32)
    to_noise(voxels.ravel(), out.ravel(), noise.line)
    if noise.missing:
        out += _DITHER * np.random.default_rng(0).standard_normal(out.shape, np.float32)
    dead = ~np.isfinite(out)
    if dead.any():
        out[dead] = _filled(out, dead)[dead]
    return out


def grey(values: NDArray[np.float32], noise: Noise) -> NDArray[np.float32]:
    """The inverse of `stabilised`."""
    out = np.empty(values.shape, np.float32)
    to_grey(values.ravel(), out.ravel(), noise.line)
    return out


def _filled(values: NDArray[np.float32], dead: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Means of the measured voxels nearby, and the median of all where there is none."""
    measured = np.where(dead, 0, values)
    median = float(np.median(values[~dead])) if not dead.all() else 0.0
    width = (0.0, _FILL, _FILL)
    total = gaussian_filter(measured - median * ~dead, width)
    weight = gaussian_filter((~dead).astype(np.float32), width)
    return (median + total / np.maximum(weight, 1e-2)).astype(np.float32)


def with_peaks_restored(
    voxels: NDArray[np.float32], sigma: NDArray[np.float64], saturation: float
) -> NDArray[np.float32]:
    """Saturated spots with the peaks that they lack: the Gaussian whose flank is cut at this distance.

    At a distance d from the edge of a saturated region of radius r, both in widths, a Gaussian is
    exp(d (2r - d) / 2) times as high as at the edge.

    Parameters
    ----------
    voxels : (Z, Y, X) float32 array
    sigma : (3,) float64 array
        Widths of a spot in voxels.
    saturation : float
        The grey value at which the camera saturates.
    """
    cut = voxels >= saturation
    if not cut.any():
        return voxels
    deep = sigma > 0
    voxel = 1 / np.where(deep, sigma, 1e-3)  # widths
    label, count = ndimage.label(cut)
    depth = np.maximum(ndimage.distance_transform_edt(cut, sampling=voxel) - voxel[-1] / 2, 0)
    deepest = ndimage.maximum(depth, label, np.arange(count + 1))
    volume = np.bincount(label.ravel()) * np.prod(voxel[deep])
    d = int(deep.sum())
    ball = np.pi ** (d / 2) / gamma(d / 2 + 1)  # of radius 1
    radius = np.minimum((volume / ball) ** (1 / d), deepest + voxel[-1])
    outer, inner = radius[label[cut]], depth[cut] * (radius / np.maximum(deepest, 1e-9))[label[cut]]
    background = float(np.nanmedian(voxels))
    rise = np.exp(inner * (2 * outer - inner) / 2)
    out = voxels.copy()
    out[cut] = background + (saturation - background) * np.where(outer < WIDEST, rise, 1.0)
    return out


def light_of_spots(
    shape: tuple[int, ...],
    position: NDArray[np.float64],
    amplitude: NDArray[np.float64],
    sigma: NDArray[np.float64],
) -> NDArray[np.float32]:
    """The light of spots of one width in a frame."""
    spots = np.zeros((len(position), PARAMETERS))
    spots[:, : X + 1], spots[:, AMPLITUDE] = position, amplitude
    return render(shape, spots, sigma, REACH)


@dataclass(frozen=True, eq=False)
class Background:
    """Light without spots, in units of the camera's noise, and how spots stand out of it.

    Parameters
    ----------
    values : (Z, Y, X) float32 array
    noise : Noise
    """

    values: NDArray[np.float32]
    noise: Noise

    @cached_property
    def grey(self) -> NDArray[np.float32]:
        """The same in grey values."""
        return grey(self.values, self.noise)

    def peaks(self, position: NDArray[np.float64], height: NDArray[np.float64]) -> NDArray[np.float64]:
        """Amplitudes in grey values of spots that stand out by these heights, in units of the noise."""
        voxel = tuple(np.rint(position).astype(int).T)
        top = grey(self.values[voxel] + height.astype(np.float32), self.noise)
        return (top - self.grey[voxel]).astype(np.float64)
