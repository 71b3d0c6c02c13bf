"""A frame as spots on a background: the state of the joint fit and its operations, slab by slab."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import to_device, to_host
from .background import Ground, Smoother, variance
from .joint_cpu import (
    AMPLITUDE,
    COLUMNS,
    ERROR,
    FAR,
    HALO,
    LEVEL,
    LOG_SIZE,
    NEAREST,
    REACH,
    Noise,
    Optics,
    X,
    Y,
    Z,
    paint_all,
    paint_beyond,
    shade,
)
from .response import Slab, bells, correlate, local_maxima, slabs

BACKGROUND = 5.5  # widths of the background's window in the plane, over that of a spot
_SURE = 5.0  # standard errors
_RESOLVED = 4.2  # standard errors at which a spot counts half in the background
_STEEP = 3.0
_RISE = 0.1  # of the background under a spot, in standard errors of its amplitude, that wakes it
_CLEAR = 0.1  # weight below which a spot is background
_FARTHEST, _MANY = 18.0, 500  # widths to which a spot of the largest size shines; spots that bands are worth
_CACHED, _TILE = 1 << 20, 16.0  # voxels of a frame that is one tile; widths of tiles, fitted in turn
_NARROWEST = 0.55  # voxels; a narrower Gaussian is not sampled any more

_Part = TypeVar("_Part")
_Made = TypeVar("_Made")
Maxima = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Work:
    """How slabs are processed: the thread pool, if any, and whether filters run on the GPU."""

    pool: Executor | None = None
    on_gpu: bool = False

    def each(self, work: Callable[[_Part], _Made], parts: Iterable[_Part]) -> list[_Made]:
        """Apply a function to all parts; results are in the order of the parts."""
        return list(self.pool.map(work, parts) if self.pool else map(work, parts))

    def there(self, values: NDArray) -> Any:
        """Copy an array to the device of the filters."""
        return to_device(values) if self.on_gpu else values


def narrowest(sigma: NDArray[np.float64], flat: bool) -> NDArray[np.float64]:
    """Widths, limited to what the voxel grid can resolve."""
    least = np.array([0.4, _NARROWEST, _NARROWEST])
    wide = np.maximum(sigma, least)
    if flat:
        wide[0] = 0.0
    return wide


class Scene:
    """A frame, its background and its spots.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
        Spots are bright; NaN marks voxels that were not measured.
    noise : Noise
    optics : Optics
    work : Work
    wider : float
        Width of the background window relative to the default.
    focus : float
        Width of the filter relative to a spot.
    """

    def __init__(
        self,
        image: NDArray[np.float32],
        noise: Noise,
        optics: Optics,
        work: Work,
        wider: float = 1.0,
        focus: float = 1.0,
    ) -> None:
        self.image, self.noise, self.work, self.wider, self.focus = image, noise, work, wider, focus
        self.model = np.zeros_like(image)
        self.spots: NDArray[np.float64] = np.empty((0, COLUMNS))
        self.active = np.empty(0, bool)
        """(n,): which spots have not come to rest."""
        self.see(optics)
        self.ground = Ground(self.smoother, self.smoother.zeros())
        self.wrong = 0.0  # share of the spots' light by which the model may be wrong as a whole
        self.spread = 1.0  # of the residual, in standard deviations of the noise
        self.surveyed: dict[Slab, Any] = {}  # spots when the residual was looked at, and what was seen
        self.curvature = np.zeros((2, 3))
        self.bright = (0.0, 0.0)  # typical amplitude in a crowd, and the weight of this prior

    def see(self, optics: Optics) -> None:
        """Replace the widths or the profile."""
        self.optics = optics._replace(sigma=narrowest(np.asarray(optics.sigma, float), optics.flat))
        y, x = (
            min(self.wider * BACKGROUND * s, max(n / 3, 0.5))
            for s, n in zip(self.optics.sigma[1:].tolist(), self.image.shape[1:], strict=True)
        )
        z, height, width = self.image.shape
        self.smoother = Smoother((z, height, width), (y, x))
        self.__dict__.pop("measured", None)
        self.taps = bells(self.focus * self.optics.sigma)
        reach = max(len(self.taps[1]) // 2 + 1, 2)
        self.parts = list(slabs(self.image.shape, reach, self.smoother.edges[0]))

    @property
    def frame(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Image and model, in the form that kernels read."""
        return self.image, self.model

    @property
    def unit(self) -> NDArray[np.float64]:
        """(3,): the widths in which distances are measured."""
        return np.where(self.optics.sigma > 0, self.optics.sigma, 1.0)

    @property
    def snr(self) -> NDArray[np.float64]:
        """(n,): amplitudes divided by their errors."""
        return self.spots[:, AMPLITUDE] / np.maximum(self.spots[:, ERROR], 1e-9)

    @property
    def sure(self) -> NDArray[np.bool_]:
        """(n,): which spots count whatever their amplitude is."""
        return self.snr > _SURE

    @property
    def in_widths(self) -> NDArray[np.float64]:
        """(n, 3): positions in widths."""
        return self.spots[:, Z : X + 1] / self.unit

    @cached_property
    def damaged(self) -> bool:
        """Whether some voxels were not measured."""
        return bool(np.isnan(self.image.sum(dtype=np.float64)))

    def tiles(self, place: NDArray) -> NDArray[np.int64]:
        """(n,): number of the tile of each place, in voxels: visiting one after another halves the time."""
        if self.image.size < _CACHED:
            return np.zeros(len(place), np.int64)
        y, x = (place[:, 1:] // (_TILE * self.optics.sigma[1:])).astype(np.int64).T
        return y * self.image.shape[2] + x

    def weight(self) -> NDArray[np.float64]:
        """(n,): weight of each spot against the background, from its significance."""
        return 1 / (1 + np.exp(-_STEEP * (self.snr - _RESOLVED)))

    def add(self, voxel: NDArray[np.int64]) -> None:
        """Start spots at these voxels with amplitude 0."""
        more = np.zeros((len(voxel), COLUMNS))
        more[:, Z : X + 1], more[:, REACH] = voxel, NEAREST
        self.spots = np.ascontiguousarray(np.vstack([self.spots, more]))
        self.active = np.append(self.active, np.ones(len(voxel), bool))
        self._levels()

    def halve(self, rows: NDArray[np.int64], shift: NDArray[np.float64]) -> None:
        """Divide spots in two of half the amplitude, moved by a shift (n, 3) and against it."""
        paint_all(self.model, self.spots[rows], self.optics, -np.ones(len(rows)))
        self.spots[rows, AMPLITUDE] /= 2
        more = self.spots[rows]
        more[:, Z : X + 1] += shift
        self.spots[rows, Z : X + 1] -= shift
        self.spots = np.ascontiguousarray(np.vstack([self.spots, more]))
        high = np.array(self.image.shape) - 0.5
        self.spots[:, Z : X + 1] = np.clip(self.spots[:, Z : X + 1], -0.5, high)
        self.active = np.ones(len(self.spots), bool)
        self._paint(np.concatenate([rows, np.arange(len(self.spots) - len(rows), len(self.spots))]))
        self._levels()

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Remove all other spots, and their light."""
        paint_all(self.model, self.spots, self.optics, rows - 1.0)
        self.spots, self.active = np.ascontiguousarray(self.spots[rows]), self.active[rows]

    @cached_property
    def measured(self) -> NDArray[np.float32]:
        """Sums over blocks of the voxels that are measured and not saturated."""
        return self.summed(lambda rows, _: (rows, self.noise.top))

    def summed(
        self, gauge: Callable[[NDArray[np.float32], Slab], tuple[NDArray[np.float32], float]]
    ) -> NDArray[np.float32]:
        """Sums of the image over the blocks of the background, where a gauge of it is below its limit."""
        sums = self.smoother.zeros(4)

        def add(slab: Slab) -> None:
            rows = self.image[:, slab.start : slab.stop]
            self.smoother.add_up(rows, *gauge(rows, slab), slab.start, sums)

        self.work.each(add, self.parts)
        return sums

    def background(self) -> None:
        """Fit the background below the spots, which are subtracted according to their weights."""
        sums = self.measured.copy()
        weight = self.weight()
        blocks = tuple(np.repeat(np.arange(len(edges) - 1), np.diff(edges)) for edges in self.smoother.edges)

        def work(some: NDArray[np.int64]) -> None:
            shade(sums[1], self.frame, self.noise, self.optics, self.spots[some], weight[some], blocks)

        self.in_bands(work, np.flatnonzero(weight > _CLEAR))
        self.rest_on(self.smoother.fit(sums, self.noise, self.work.each))

    def in_bands(self, work: Callable[[NDArray[np.int64]], _Made], rows: NDArray[np.int64]) -> list[_Made]:
        """Apply a function to spots of bands along y; those of every second band share no block or voxel."""
        if len(rows) < _MANY:
            return [work(rows)]
        wide = 2 * (_FARTHEST * float(self.optics.sigma[1]) + self.smoother.wide[0])
        band = ((self.spots[rows, Y] + 1) / wide).astype(np.int64)
        parts = [rows[band == number] for number in range(int(band.max()) + 1)]
        return self.work.each(work, parts[::2]) + self.work.each(work, parts[1::2])

    def rest_on(self, ground: Ground) -> None:
        """Replace the background below the spots."""
        before, self.ground = self.ground, ground
        changes = [Ground(before.smoother, -before.grid), ground]
        if before.smoother is ground.smoother:
            changes = [Ground(ground.smoother, ground.grid - before.grid)]

        def renew(slab: Slab) -> None:
            for change in changes:
                change.add_to(self.model[:, slab.start : slab.stop], slab.start)

        self.work.each(renew, self.parts)
        level = self.spots[:, LEVEL].copy()
        self._levels()
        self.active |= np.abs(self.spots[:, LEVEL] - level) > _RISE * self.spots[:, ERROR]

    def repaint(self) -> None:
        """Recompute the model: the background plus the light of all spots."""
        for slab in self.parts:
            self.model[:, slab.start : slab.stop] = self.ground.rows(slab.start, slab.stop)
        self._paint(np.arange(len(self.spots)))

    def _paint(self, rows: NDArray[np.int64]) -> None:
        """Add the light of spots to the model, cores and all that is far."""
        spots = self.spots[rows]
        spots[:, FAR:] = spots[:, : LOG_SIZE + 1]
        spots[spots[:, REACH] <= NEAREST, FAR] = 0.0
        self.spots[rows] = spots
        paint_all(self.model, spots, self.optics, np.ones(len(rows)))

    def shining(self, slab: Slab) -> NDArray[np.bool_]:
        """(n,): which spots shine into the wide rows of a slab."""
        reach = self.spots[:, REACH] * np.exp(self.spots[:, LOG_SIZE]) * self.optics.sigma[1]
        y = self.spots[:, Y]
        return (y + reach >= slab.first) & (y - reach < slab.last)

    def halo(self, slab: Slab) -> NDArray[np.float32]:
        """(Z, y, X): light of the spots beyond their cores, in the wide rows of a slab."""
        light = np.zeros((self.image.shape[0], slab.last - slab.first, self.image.shape[2]), np.float32)
        moved = self.spots[(self.spots[:, REACH] ** 2 > HALO) & self.shining(slab)]
        moved[:, Y] -= slab.first
        paint_beyond(light, moved, self.optics, HALO)
        return light

    def response(self, slab: Slab) -> Any:
        """The residual after the matched filter, for near rows, on the filters' device."""
        residual = self.image[:, slab.wide] - self.model[:, slab.wide]
        if self.noise.top < np.inf:  # what is cut off lacks no light
            residual[(residual < 0) & (self.image[:, slab.wide] >= self.noise.top)] = 0.0
        if self.damaged:
            residual[np.isnan(residual)] = 0.0
        return self.filtered(residual, slab)

    def filtered(self, values: NDArray[np.float32], slab: Slab, *, squared: bool = False) -> Any:
        """Values of wide rows after the filter or its square, for near rows, on the filters' device."""
        z, y, x = (taps**2 for taps in self.taps) if squared else self.taps
        return correlate(self.work.there(values), (z, y, x), slab.inside)

    def variances(self, slab: Slab) -> Any:
        """The variance of the response, for near rows, on the filters' device."""
        spread = variance(self.model[:, slab.wide], self.noise)
        if self.damaged:
            spread *= np.isfinite(self.image[:, slab.wide])
        return self.filtered(spread, slab, squared=True) + np.float32(1e-30)

    def significance(self, slab: Slab) -> Any:
        """Response of the residual in standard deviations of a spot-free frame, for near rows."""
        return self.response(slab) / self.variances(slab) ** 0.5

    def maxima(self, responses: Callable[[Slab], Iterable[Any]], *low: float) -> list[Maxima]:
        """For each response: voxels (n, 3) of its maxima above `low`, and their heights, highest first."""

        def work(slab: Slab) -> list[Maxima]:
            return [
                own_maxima(slab, values, least) for values, least in zip(responses(slab), low, strict=True)
            ]

        return [_highest_first(parts) for parts in zip(*self.work.each(work, self.parts), strict=True)]

    def _levels(self) -> None:
        if len(self.spots):
            self.spots[:, LEVEL] = self.ground.at(self.spots[:, Z : X + 1])


def own_maxima(slab: Slab, values: Any, low: float) -> Maxima:
    """Maxima in the rows of a slab, of a response in its near rows."""
    voxel = local_maxima(values, low)
    height = to_host(values[tuple(voxel.T)]).astype(np.float64)
    place = to_host(voxel) + np.array([0, slab.near.start, 0])
    own = (place[:, 1] >= slab.start) & (place[:, 1] < slab.stop)
    return place[own], height[own]


def _highest_first(parts: Iterable[Maxima]) -> Maxima:
    place, height = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((*place.T[::-1], -height))
    return place[order], height[order]
