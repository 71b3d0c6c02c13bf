"""Cosine transforms, spectra and whitened filters of many frames; see `transform` and `spectrum`."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np

from ...compute.arrays import array_module, cupy_module, to_device
from ...compute.cuda import cuda_function, launch
from ..fit_cpu import REACH
from ..spectrum import (
    _CAMERA,
    _CHANCE,
    _LEAST_VARIANCE,
    _LOWEST,
    _NEGLIGIBLE,
    Modes,
)

SOURCE = "detection/gpu/modes.cu"
_MOST_KEPT = 16
"""Guard: matrices that are kept: those of the axes of two shapes and their bands."""


@lru_cache(_MOST_KEPT)
def _matrix(n, small):
    """(small, n) f4 on the GPU: the first rows of an orthonormal cosine transform."""
    k, i = np.arange(small)[:, None], np.arange(n)
    cosines = np.sqrt(2 / n) * np.cos(np.pi / (2 * n) * (k * (2 * i + 1) % (4 * n)))
    cosines[0] = np.sqrt(1 / n)
    return to_device(cosines.astype(np.float32))


def forward(values, small):
    """The first `small` modes of frames (B, Z, Y, X) f4 along z, y, x."""
    depth, height, width = values.shape[1:]
    if width > 1:
        values = values @ _matrix(width, small[2]).T
    if height > 1:
        values = _matrix(height, small[1]) @ values
    return _along_z(values, _matrix(depth, small[0])) if depth > 1 else values


def back(modes, shape):
    """Frames of this shape from their first modes."""
    depth, height, width = modes.shape[1:]
    if depth > 1 or shape[0] > 1:
        modes = _along_z(modes, _matrix(shape[0], depth).T)
    if height > 1 or shape[1] > 1:
        modes = _matrix(shape[1], height).T @ modes
    return modes @ _matrix(shape[2], width) if width > 1 or shape[2] > 1 else modes


def _along_z(values, matrix):
    frames, depth, height, width = values.shape
    out = matrix @ values.reshape(frames, depth, height * width)
    return out.reshape(frames, len(matrix), height, width)


@lru_cache(_MOST_KEPT)
def rings_of(shape):
    """The modes of a shape."""
    return Rings(Modes(shape))


@lru_cache(_MOST_KEPT)
def _boundary_cosines(n):
    """(n - 1, n) on the GPU: of the wave numbers but 0, at twice each voxel's distance from a boundary."""
    m = 2 * np.arange(n) + 1
    return to_device(np.cos(np.pi / n * np.outer(np.arange(1, n), np.minimum(m, 2 * n - m))))


@lru_cache(_MOST_KEPT)
def _offset_cosines(n, most):
    """(most + 1, n) f4 on the GPU: of the wave numbers of an axis, by offset."""
    k = np.arange(n, dtype=np.float32) * np.float32(np.pi / n)
    return to_device(np.cos(np.outer(np.arange(most + 1), k)).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Rings:
    """The modes of a shape, with what kernels need of them on the GPU."""

    modes: Modes

    @cached_property
    def tables(self):
        """Modes by bin and where each bin starts; blocks along z; rings on either side, and share of the way.

        And the relative error of each bin's power, (blocks, rings).
        """
        modes, rings = self.modes, len(self.modes.count)
        block = np.repeat(np.arange(len(modes.blocks)), [each.stop - each.start for each in modes.blocks])
        bins = (block[:, None] * rings + modes.ring.ravel()).ravel()
        start = np.append(0, np.cumsum(np.bincount(bins, minlength=len(modes.blocks) * rings)))
        used = np.flatnonzero((modes.count > 0) & (np.arange(rings) > 0))
        centre = np.bincount(modes.ring.ravel(), modes.plane.ravel()) / np.maximum(modes.count, 1)
        place = np.interp(modes.plane.ravel(), centre[used], np.arange(len(used)))
        low = np.minimum(place.astype(int), len(used) - 1)
        high = np.minimum(low + 1, len(used) - 1)
        error = _CHANCE * np.sqrt(2 / np.maximum(modes.modes, 1)) + _CAMERA
        whole = [np.argsort(bins, kind="stable"), start, block, used[low], used[high]]
        return tuple(to_device(each.astype(np.int32)) for each in whole), *map(
            to_device, (place - low, error)
        )

    def power(self, transform, floor, first=None, kept=0.0):
        """Power (A, Z, Y, X) f4 of frames at every mode, see `spectrum`; with a part of what spots added.

        first : their power with spots, of which the part `kept` of what is missing is added.
        """
        xp = cupy_module()
        (order, start, block, low, high), share, error = self.tables
        frames, (blocks, rings), voxels = len(transform), error.shape, int(np.prod(transform.shape[1:]))
        table = xp.empty((frames, blocks, rings))
        cuda_function(SOURCE, "ring_power")(
            (blocks * rings, frames), (128,),
            (transform, order, start, np.int32(blocks * rings), np.int64(voxels), table),
        )  # fmt: skip
        sizes, least = (np.int32(blocks), np.int32(rings)), max(floor, np.finfo(np.float32).eps)
        cuda_function(SOURCE, "let_fall")(
            (frames,), (64,),
            (table, error, start, *sizes, np.float64(least), xp.empty(2 * table.size)),
        )  # fmt: skip
        out, plane = xp.empty(transform.shape, np.float32), len(low)
        launch(
            cuda_function(SOURCE, "power_at_modes"), out.size,
            (table, block, low, high, share, out if first is None else first, np.int32(first is not None),
             np.float32(kept), *sizes, np.int32(len(block)), np.int32(plane), np.int64(out.size), out),
        )  # fmt: skip
        return out


@dataclass(eq=False)
class Filters:
    """The whitened matched filter of each frame; see `spectrum.Filter`.

    Parameters
    ----------
    taps, wiener, gain : (B, Z, Y, X) float32 array
    octant : (B, z, y, x) float32 array
        Response to a spot over its peak, by offset.
    half : (B, 3) int32 array
        Largest offsets.
    curvature : (B, 3) float64 array
    scale : (B,) float64 array
    """

    taps: object
    wiener: object
    gain: object
    octant: object
    half: object
    curvature: object
    scale: object

    def replace(self, at, other):
        """Those of some frames by others, in place."""
        for each in fields(self):
            getattr(self, each.name)[at] = getattr(other, each.name)


HEIGHTS = np.linspace(_LOWEST, 9, 600)
"""As `Filter.heights`."""


def noise_above(volume, curvature, u):
    """Expected maxima of noise above heights u (..., n) in fields (..., 3); see `spectrum.Maxima`."""
    xp = array_module(u)
    deep = curvature > 1e-9
    d = deep.sum(axis=-1)[..., None]
    root = xp.sqrt(xp.where(deep, curvature, 1.0).prod(axis=-1))[..., None]
    hermite = xp.where(d == 3, u**2 - 1, xp.where(d == 2, u, xp.where(d == 1, 1.0, 1 / xp.maximum(u, 0.1))))
    density = root * (2 * np.pi) ** (-(d + 1) / 2.0) * xp.maximum(hermite, 0.05) * xp.exp(-u * u / 2)
    return volume * density


def thresholds(above, expected):
    """(B,) on the host: the height above which so many (B,) maxima of noise are expected in each frame."""
    below = above < np.reshape(expected, (-1, 1))
    return HEIGHTS[np.where(below.any(axis=1), below.argmax(axis=1), -1)]


def filters(modes, sigma, power):
    """The filters of frames of this power at their modes, for spots of these widths in voxels."""
    xp = cupy_module()
    shape, k = modes.shape, modes.k
    gauss = [np.exp(-((each * s) ** 2) / 2).astype(np.float32) for each, s in zip(k, sigma, strict=True)]
    spot = to_device(gauss[0][:, None, None] * gauss[1][:, None] * gauss[2])
    taps = spot / power
    taps *= (1 / xp.sqrt(_mean(spot * taps))).astype(np.float32)[:, None, None, None]
    weight = taps * spot
    mean = _mean(weight)
    weight *= (1 / mean).astype(np.float32)[:, None, None, None]
    shares = _shares(weight)
    squares = [to_device(each.astype(np.float64) ** 2) for each in k]
    curvature = xp.stack([share @ square for share, square in zip(shares, squares, strict=True)], axis=1)
    scale = mean * np.prod([np.sqrt(2 * np.pi) * s if s > 0 else 1.0 for s in sigma])
    for share, s in zip(shares, sigma, strict=True):
        if s > 0:
            scale = scale * (1 - share[:, 0] / 2)
    wiener = (1 - 1 / xp.maximum(power, np.float32(1))).astype(np.float32) * spot
    return Filters(taps, wiener, _gain(shares, shape), *_octant(weight, modes, sigma), curvature, scale)


def _mean(values):
    return values.mean(axis=(1, 2, 3), dtype=np.float64)


def _shares(weight):
    """Shares of the response's power by wave number along z, y, x: (B, n) each."""
    plane = weight.sum(axis=1, dtype=np.float64)
    sums = weight.sum(axis=(2, 3), dtype=np.float64), plane.sum(axis=2), plane.sum(axis=1)
    return [each / each.sum(axis=1, keepdims=True) for each in sums]


def _gain(shares, shape):
    """Standard deviation of the response at every voxel, over that of all; see `Filter.boundary_gain`."""
    xp = cupy_module()
    out = xp.ones((len(shares[0]), *shape), np.float32)
    for axis, n in enumerate(shape):
        if n > 1:
            gain = xp.sqrt(xp.maximum(1 + shares[axis][:, 1:] @ _boundary_cosines(n), _LEAST_VARIANCE))
            out *= gain.astype(np.float32).reshape(-1, *(n if a == axis else 1 for a in range(3)))
    return out


def _octant(weight, modes, sigma):
    """Response to a spot by offset (B, z, y, x), and the largest that counts (B, 3); see `Filter.kernel`."""
    xp = cupy_module()
    sizes = [
        (min(n, 2 * int(2 * REACH * s) + 3) - 1) // 2 if n > 1 else 0
        for n, s in zip(modes.shape, sigma, strict=True)
    ]
    cosines = [_offset_cosines(n, most) for n, most in zip(modes.shape, sizes, strict=True)]
    part = _along_z(cosines[1] @ (weight @ cosines[2].T), cosines[0])
    part = part / part.max(axis=(1, 2, 3), keepdims=True)
    left, halves = abs(part), []
    for axis in range(3):
        most = left.max(axis=tuple(1 + other for other in range(3) if other != axis))
        half = xp.minimum(sizes[axis], (most > _NEGLIGIBLE).sum(axis=1) + 1)
        within = xp.arange(sizes[axis] + 1) <= half[:, None]
        left = left * within.reshape(-1, *(sizes[axis] + 1 if a == axis else 1 for a in range(3)))
        halves.append(half)
    return xp.ascontiguousarray(part), xp.stack(halves, axis=1).astype(np.int32)
