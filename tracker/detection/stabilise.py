"""A frame in units of its camera's noise: the Anscombe transform of variance base + slope · mean.

y = 2 / slope · sqrt(base + slope · x) has variance 1 (Anscombe, Biometrika 35, 246, 1948). Below the least
variance it goes on as a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.ndimage import gaussian_filter

from .noise import Noise
from .stabilise_cpu import stand_out, to_grey, to_noise

_BALL = {2: np.pi, 3: 4 * np.pi / 3}  # area and volume of a ball of radius 1
_WIDEST = 3.0  # radius in widths beyond which a saturated region is no spot
_FILL = 2.0  # voxels of the plane from which those that were not measured are filled


def stabilised(voxels: NDArray[np.float32], noise: Noise) -> NDArray[np.float32]:
    """Values whose camera noise has variance 1; voxels that are not finite get those about them.

    Examples
    --------
    >>> light = np.random.default_rng(0).poisson(np.linspace(20, 200, 300), (1, 300, 300)).astype(np.float32)
    >>> bool(abs(np.diff(stabilised(light, Noise(0.0, 1.0, 1.0, np.inf)), axis=1).var() / 2 - 1) < 0.05)
    True
    """
    out = np.empty(voxels.shape, np.float32)
    to_noise(voxels.ravel(), out.ravel(), noise[:3])
    dead = ~np.isfinite(out)
    if dead.any():
        out[dead] = _filled(out, dead)[dead]
    return out


def grey(values: NDArray[np.float32], noise: Noise) -> NDArray[np.float32]:
    """The inverse of `stabilised`."""
    out = np.empty(values.shape, np.float32)
    to_grey(values.ravel(), out.ravel(), noise[:3])
    return out


def _filled(values: NDArray[np.float32], dead: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Means of the measured voxels nearby, and the median of all where there is none."""
    known = np.where(dead, 0, values)
    median = float(np.median(values[~dead])) if not dead.all() else 0.0
    width = (0.0, _FILL, _FILL)
    total = gaussian_filter(known - median * ~dead, width)
    weight = gaussian_filter((~dead).astype(np.float32), width)
    return (median + total / np.maximum(weight, 1e-2)).astype(np.float32)


def uncut(voxels: NDArray[np.float32], sigma: NDArray[np.float64], top: float) -> NDArray[np.float32]:
    """Saturated spots with the peaks that they lack: the Gaussian whose flank is cut at this distance.

    At a distance d from the edge of a saturated region of radius r, both in widths, a Gaussian is
    exp(d (2r - d) / 2) times as high as at the edge.

    Parameters
    ----------
    voxels : (Z, Y, X) float32 array
    sigma : (3,) float64 array
        Widths of a spot in voxels.
    top : float
        The grey value at which the camera saturates.
    """
    cut = voxels >= top
    if not cut.any():
        return voxels
    deep = sigma > 0
    voxel = 1 / np.where(deep, sigma, 1e-3)  # widths
    label, count = ndimage.label(cut)
    depth = np.maximum(ndimage.distance_transform_edt(cut, sampling=voxel) - voxel[-1] / 2, 0)
    deepest = ndimage.maximum(depth, label, np.arange(count + 1))
    volume = np.bincount(label.ravel()) * np.prod(voxel[deep])
    radius = np.minimum((volume / _BALL[int(deep.sum())]) ** (1 / deep.sum()), deepest + voxel[-1])
    outer, inner = radius[label[cut]], depth[cut] * (radius / np.maximum(deepest, 1e-9))[label[cut]]
    level = float(np.nanmedian(voxels))
    rise = np.exp(inner * (2 * outer - inner) / 2)
    out = voxels.copy()
    out[cut] = level + (top - level) * np.where(outer < _WIDEST, rise, 1.0)
    return out


@dataclass(frozen=True, eq=False)
class Ground:
    """Light without spots, in units of the camera's noise, and how light adds to it.

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

    def peaks(self, voxel: tuple[NDArray[np.int64], ...], height: NDArray[np.float64]) -> NDArray[np.float64]:
        """Grey values of light that stands out by this height, in units of the noise, at these voxels."""
        top = grey(self.values[voxel] + height.astype(np.float32), self.noise)
        return (top - self.grey[voxel]).astype(np.float64)

    def under(self, light: NDArray[np.float32]) -> NDArray[np.float32]:
        """By how much this light, in grey values, stands out in units of the noise; in place."""
        if light.any():
            stand_out(light.ravel(), self.grey.ravel(), self.values.ravel(), self.noise[:3])
        return light
