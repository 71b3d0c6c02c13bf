"""Spectrum of a frame, and the whitened matched filter of a Gaussian spot.

Everything but the spots, camera noise and uneven light alike, is a stationary Gaussian field of spectrum
P(k). The frame is mirrored at its boundaries, so that its transform F is a discrete cosine transform. The
filter of a spot of transform G is G / P (Turin, IRE Trans. Inf. Theory 6, 311, 1960); its response

    z = IDCT(F G / P) / sqrt(mean(G² / P))

has variance 1 for every width. The expected number of its maxima above u follows from the curvatures
Λ_a = Σ k_a² G² / P / Σ G² / P, by the Euler characteristic (Adler, The Geometry of Random Fields, 1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.optimize import isotonic_regression

from .fit_cpu import REACH
from .transform import CosineTransform

_RATIO = 1.12
"""Prior: ratio of the wave numbers of one ring to the next: how finely light may vary with them."""
_BLOCK = 0.25
"""Prior: height of a block along z, relative to its wave number."""
_CHANCE = 3.0
"""Error level: standard errors of a ring's power within which it is that of the camera."""
_CAMERA = 0.1
"""Prior: relative error of the camera's noise."""
_NEGLIGIBLE = 0.01
"""Guard: least response to a spot, relative to its peak, that counts for others."""
_LOWEST = 2.0
"""Error level: least height of a candidate in standard deviations: below, the Euler characteristic does not
count maxima."""
_LEAST_VARIANCE = 0.1
"""Guard: least variance of the response at a boundary, relative to that of all."""


def along(axis: int, values: NDArray) -> NDArray:
    """Values of one axis, to be combined with arrays of three."""
    return np.asarray(values, np.float32).reshape([-1 if axis == other else 1 for other in range(3)])


@dataclass(frozen=True, eq=False)
class Modes:
    """Wave numbers of a frame's cosine transform, in rings in the plane and blocks along z.

    Parameters
    ----------
    shape : tuple of 3 int
    """

    shape: tuple[int, ...]

    @cached_property
    def k(self) -> list[NDArray[np.float32]]:
        """Wave numbers along z, y, x, in radians a voxel."""
        return [np.arange(n, dtype=np.float32) * np.float32(pi / n) for n in self.shape]

    @cached_property
    def plane(self) -> NDArray[np.float32]:
        """(Y, X): wave numbers in the plane."""
        return np.sqrt(self.k[1][:, None] ** 2 + self.k[2] ** 2)

    @cached_property
    def ring(self) -> NDArray[np.int64]:
        """(Y, X): ring of each mode; ring 0 holds the mean alone."""
        least = pi / min(n for n in self.shape[1:])
        top = float(self.plane.max())
        edges = [0.0, 0.9 * least]
        while edges[-1] < top:
            edges.append(max(edges[-1] * _RATIO, edges[-1] + least))
        edges[-1] = top + 1
        return np.digitize(self.plane, edges) - 1

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """Modes of each ring in one plane."""
        return np.bincount(self.ring.ravel())

    @cached_property
    def blocks(self) -> list[slice]:
        """Wave numbers along z that are taken together."""
        out, z = [], 0
        while z < self.shape[0]:
            step = max(1, round(z * _BLOCK))
            out.append(slice(z, min(z + step, self.shape[0])))
            z += step
        return out

    def mean(self, squares: NDArray[np.float32]) -> NDArray[np.float64]:
        """(blocks, rings): means of values over rings and blocks."""
        flat, rings = self.ring.ravel(), len(self.count)
        total = [
            np.bincount(flat, squares[block].sum(axis=0, dtype=np.float64).ravel(), rings)
            for block in self.blocks
        ]
        return np.stack(total) / np.maximum(self.modes, 1)

    @cached_property
    def modes(self) -> NDArray[np.float64]:
        """(blocks, rings): number of modes."""
        return np.array([[block.stop - block.start] for block in self.blocks]) * self.count

    def at_every_mode(self, table: NDArray[np.float64]) -> NDArray[np.float32]:
        """Values of rings and blocks at every mode: linear in the logarithm between rings."""
        used = (self.count > 0) & (np.arange(len(self.count)) > 0)
        centre = np.bincount(self.ring.ravel(), self.plane.ravel()) / np.maximum(self.count, 1)
        out = np.empty(self.shape, np.float32)
        if not used.any():
            out[:] = np.float32(table.max())
            return out
        for block, row in zip(self.blocks, np.log(table), strict=True):
            out[block] = np.exp(np.interp(self.plane, centre[used], row[used])).astype(np.float32)
        return out


def _falling(power: NDArray[np.float64], modes: Modes) -> NDArray[np.float64]:
    """Power that never rises with the wave number: a quiet mode among loud ones is chance.

    In the plane it is the most likely one, by isotonic regression; along z the largest of finer structure.
    """
    used = modes.count > 0
    power[0, 0] = power[0].max()  # k = 0
    for row, weight in zip(power, modes.modes, strict=True):
        row[used] = isotonic_regression(row[used], weights=weight[used], increasing=False).x
    return np.maximum.accumulate(power[::-1], axis=0)[::-1]


def spectrum(modes: Modes, transform: NDArray[np.float32], floor: float = 0.0) -> NDArray[np.float32]:
    """Power of a frame at every mode; infinite at k = 0, so that constant light is ignored.

    Rings whose power is that of the camera's noise within its error have just this.

    Parameters
    ----------
    modes : Modes
    transform : (Z, Y, X) float32 array
        Cosine transform of a frame whose camera noise has variance 1.
    floor : float
        Least power, as of `Noise`.
    """
    squares = transform**2
    squares[0, 0, 0] = 0
    power = _falling(modes.mean(squares), modes)
    error = _CHANCE * np.sqrt(2 / np.maximum(modes.modes, 1)) + _CAMERA
    least = max(floor, float(np.finfo(np.float32).eps))
    out = modes.at_every_mode(np.where(np.abs(power - 1) < error, 1.0, np.maximum(power, least)))
    out[0, 0, 0] = np.inf
    return out


class Maxima(NamedTuple):
    """Maxima of a Gaussian field of variance 1.

    Parameters
    ----------
    volume : float
        Voxels.
    curvature : (3,) float64 array
        Mean squares of its slopes along each axis, in 1 / voxel².
    """

    volume: float
    curvature: NDArray[np.float64]

    def above(self, u: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Expected number of maxima above u."""
        u = np.asarray(u, float)
        deep = self.curvature[self.curvature > 1e-9]
        d = len(deep)
        hermite = {0: 1 / np.maximum(u, 0.1), 1: np.ones_like(u), 2: u, 3: u**2 - 1}[d]
        density = np.sqrt(np.prod(deep)) * (2 * pi) ** (-(d + 1) / 2)
        return self.volume * density * np.maximum(hermite, 0.05) * np.exp(-u * u / 2)


@dataclass(frozen=True, eq=False)
class Filter:
    """The whitened matched filter of one width.

    Parameters
    ----------
    modes : Modes
    sigma : (3,) float64 array
        Widths of the spot in voxels; 0 along a flat z axis.
    power : (Z, Y, X) float32 array
        As `spectrum` returns it.
    dct : CosineTransform
        By which frames are filtered.
    """

    modes: Modes
    sigma: NDArray[np.float64]
    power: NDArray[np.float32]
    dct: CosineTransform

    @cached_property
    def spot(self) -> NDArray[np.float32]:
        """Transform of a spot, 1 at k = 0."""
        g = [
            along(axis, np.exp(-((k * s) ** 2) / 2))
            for axis, (k, s) in enumerate(zip(self.modes.k, self.sigma, strict=True))
        ]
        return g[0] * g[1] * g[2]

    @cached_property
    def taps(self) -> NDArray[np.float32]:
        """G / P at every mode, normalised so that the response has variance 1."""
        taps = self.spot / self.power
        taps *= np.float32(1 / np.sqrt(float((self.spot * taps).mean(dtype=np.float64))))
        return taps

    @cached_property
    def weight(self) -> NDArray[np.float32]:
        """Power of the response at every mode; its mean is 1."""
        weight = self.taps * self.spot
        weight *= np.float32(1 / weight.mean(dtype=np.float64))
        return weight

    @cached_property
    def along(self) -> list[NDArray[np.float64]]:
        """Shares of the response's power by wave number along z, y, x."""
        plane = self.weight.sum(axis=0, dtype=np.float64)
        sums = self.weight.sum(axis=(1, 2), dtype=np.float64), plane.sum(axis=1), plane.sum(axis=0)
        return [each / each.sum() for each in sums]

    @cached_property
    def curvature(self) -> NDArray[np.float64]:
        """(3,): mean squares of the response's slopes along each axis, in 1 / voxel²."""
        return np.array([share @ k**2 for share, k in zip(self.along, self.modes.k, strict=True)])

    @cached_property
    def scale(self) -> float:
        """Response to a spot whose peak is 1, in standard deviations, far from the boundaries.

        The mean over all positions holds the doubled response at boundaries as well: half of the power at
        k = 0.
        """
        wide = [np.sqrt(2 * pi) * s if s > 0 else 1.0 for s in self.sigma]
        deep = [1 - share[0] / 2 for share, s in zip(self.along, self.sigma, strict=True) if s > 0]
        return float(np.prod(wide) * np.prod(deep)) * float((self.spot * self.taps).mean(dtype=np.float64))

    @cached_property
    def boundary_gain(self) -> NDArray[np.float32]:
        """Standard deviation of the response at every voxel, over that of all.

        Near boundaries, noise and its mirror image add up.
        """
        out = np.ones((1, 1, 1), np.float32)
        for axis, n in enumerate(self.modes.shape):
            if n == 1:
                continue
            power = self.along[axis]
            sums = (fft.dct(np.append(power, 0), type=1) - power[0]) / 2  # of power · cos(π k m / n) by m
            m = 2 * np.arange(n) + 1
            variance = 1 + sums[np.minimum(m, 2 * n - m)]
            out = out * along(axis, np.sqrt(np.maximum(variance, _LEAST_VARIANCE)))
        return np.broadcast_to(out, self.modes.shape).copy()

    @cached_property
    def wiener(self) -> NDArray[np.float32]:
        """Share of the power of modes that is uneven light, no finer than a spot; it is 0 of those beyond."""
        share = (1 - 1 / np.maximum(self.power, np.float32(1))).astype(np.float32) * self.spot
        low = [slice(np.flatnonzero(share.any(axis=other))[-1] + 1) for other in ((1, 2), (0, 2), (0, 1))]
        return share[tuple(low)]

    @cached_property
    def maxima(self) -> Maxima:
        """The expected maxima of noise."""
        return Maxima(float(np.prod(self.modes.shape)), self.curvature)

    @cached_property
    def heights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Heights, and the expected maxima of noise above each."""
        u = np.linspace(_LOWEST, 9, 600)
        return u, self.maxima.above(u)

    def threshold(self, expected: float = 1.0) -> float:
        """The height above which so many maxima of noise are expected."""
        u, above = self.heights
        below = above < expected
        return float(u[np.argmax(below)]) if below.any() else float(u[-1])

    @cached_property
    def kernel(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Response to a spot over its peak, by offset in voxels, and the offset's largest values (3,).

        Spot and filter have a reach each, beyond which the response counts as 0.
        """
        size = [
            min(n, 2 * int(2 * REACH * s) + 3) if n > 1 else 1
            for n, s in zip(self.modes.shape, self.sigma, strict=True)
        ]
        half = np.array([(n - 1) // 2 for n in size])
        part: NDArray = self.weight
        for axis in range(3):  # cosines of the few offsets that are needed
            cosines = np.cos(np.outer(np.arange(half[axis] + 1), self.modes.k[axis])).astype(np.float32)
            part = np.einsum(part, [0, 1, 2], cosines, [3, axis], [3 if a == axis else a for a in range(3)])
        for axis in range(3):
            part = np.concatenate([np.flip(part, axis), part.take(range(1, part.shape[axis]), axis)], axis)
        part = part / part.max()
        for axis in range(3):  # without what is negligible
            most = abs(part).max(axis=tuple(other for other in range(3) if other != axis))
            half[axis] = min(half[axis], np.count_nonzero(most[half[axis] :] > _NEGLIGIBLE) + 1)
            middle = len(most) // 2
            part = part.take(range(middle - half[axis], middle + half[axis] + 1), axis)
        return np.ascontiguousarray(part, dtype=np.float32), half

    def respond(self, modes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Response at every voxel, in standard deviations, to a frame of this cosine transform."""
        return self.dct.back(modes * self.taps)
