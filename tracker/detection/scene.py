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
from .joint_cpu import AMPLITUDE, COLUMNS, ERROR, LEVEL, REACH, Noise, Optics, X, Z, paint_all
from .response import Slab, bells, correlate, local_maxima, slabs, squared

BACKGROUND = 5.5  # widths of the background's window in the plane, over that of a spot
HALO = 6.25  # squared widths beyond which light is halo
_RESOLVED = 4.2  # standard errors at which a spot counts half in the background
_STEEP = 3.0
_NARROWEST = 0.55  # voxels; a narrower Gaussian is not sampled any more
_NEAR = 2.5  # widths that a spot is painted to before its first visit

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Work:
    """How slabs are processed: the thread pool, if any, and whether filters run on the GPU."""

    pool: Executor | None = None
    on_gpu: bool = False

    def each(self, work: Callable[[Slab], _Made], parts: Iterable[Slab]) -> list[_Made]:
        """Apply a function to all slabs; results are in the order of the slabs."""
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
    wider : float
        Width of the background window relative to the default.
    work : Work
    """

    def __init__(
        self, image: NDArray[np.float32], noise: Noise, optics: Optics, work: Work, wider: float = 1.0
    ) -> None:
        self.image, self.noise, self.work, self.wider = image, noise, work, wider
        self.model = np.zeros_like(image)
        self.spots: NDArray[np.float64] = np.empty((0, COLUMNS))
        self.quiet = np.ones(image.shape, bool)
        self.see(optics)
        flat = np.zeros((image.shape[0], *(len(self.smoother.centres(axis)) for axis in (0, 1))))
        self.ground = Ground(self.smoother, flat)
        self.wrong = 0.0  # share of the spots' light by which the model may be wrong as a whole
        self.spread = 1.0  # of the residual, in standard deviations of the noise
        self.curvature = np.zeros((2, 3))

    def see(self, optics: Optics) -> None:
        """Replace the widths or the profile."""
        self.optics = optics._replace(sigma=narrowest(np.asarray(optics.sigma, float), optics.flat))
        y, x = (
            min(self.wider * BACKGROUND * s, max(n / 3, 0.5))
            for s, n in zip(self.optics.sigma[1:].tolist(), self.image.shape[1:], strict=True)
        )
        z, height, width = self.image.shape
        self.smoother = Smoother((z, height, width), (y, x))
        self.taps = bells(self.optics.sigma)
        reach = max(len(self.taps[1]) // 2 + 1, 2)
        self.parts = list(slabs(self.image.shape, reach, self.smoother.block[0]))

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
    def in_widths(self) -> NDArray[np.float64]:
        """(n, 3): positions in widths."""
        return self.spots[:, Z : X + 1] / self.unit

    @cached_property
    def damaged(self) -> bool:
        """Whether some voxels were not measured."""
        return not bool(np.isfinite(self.image).all())

    def weight(self) -> NDArray[np.float64]:
        """(n,): weight of each spot against the background, from its significance."""
        return 1 / (1 + np.exp(-_STEEP * (self.snr - _RESOLVED)))

    def add(self, voxel: NDArray[np.int64]) -> None:
        """Start spots at these voxels with amplitude 0."""
        more = np.zeros((len(voxel), COLUMNS))
        more[:, Z : X + 1], more[:, REACH] = voxel, _NEAR
        self.spots = np.ascontiguousarray(np.vstack([self.spots, more]))
        self._levels()

    def background(self) -> None:
        """Fit the background below the spots, which are subtracted according to their weights."""
        weak = 1 - self.weight()
        paint_all(self.model, self.spots, self.optics, -weak, 0.0)
        before = self.ground

        def part(slab: Slab) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
            rows = slice(slab.start, slab.stop)
            old = before.rows(slab.start, slab.stop)
            image = self.image[:, rows]
            return image - (self.model[:, rows] - old), image < self.noise.top

        after = self.smoother.fit(self.parts, part, self.noise)

        def renew(slab: Slab) -> None:
            rows = slab.start, slab.stop
            self.model[:, slice(*rows)] += after.rows(*rows) - before.rows(*rows)

        self.work.each(renew, self.parts)
        self.ground = after
        paint_all(self.model, self.spots, self.optics, weak, 0.0)
        self._levels()

    def repaint(self) -> None:
        """Recompute the model: the background plus the light of all spots."""
        for slab in self.parts:
            self.model[:, slab.start : slab.stop] = self.ground.rows(slab.start, slab.stop)
        paint_all(self.model, self.spots, self.optics, np.ones(len(self.spots)), 0.0)

    def halo(self, slab: Slab) -> NDArray[np.float32]:
        """(Z, y, X): light of the spots beyond their cores, in the wide rows of a slab."""
        light = np.zeros((self.image.shape[0], slab.last - slab.first, self.image.shape[2]), np.float32)
        reach = self.spots[:, REACH] * np.exp(self.spots[:, 4]) * self.optics.sigma[1]
        y = self.spots[:, Z + 1]
        near = (self.spots[:, REACH] ** 2 > HALO) & (y + reach >= slab.first) & (y - reach < slab.last)
        moved = self.spots[near].copy()
        moved[:, Z + 1] -= slab.first
        paint_all(light, moved, self.optics, np.ones(len(moved)), HALO)
        return light

    def filtered(self, slab: Slab) -> tuple[Any, Any]:
        """Residual and variance after the matched filter, for rows with margins, on the filters' device."""
        residual = self.image[:, slab.wide] - self.model[:, slab.wide]
        spread = variance(self.model[:, slab.wide], self.noise).astype(np.float32)
        if self.noise.top < np.inf:  # what is cut off lacks no light
            residual[(residual < 0) & (self.image[:, slab.wide] >= self.noise.top)] = 0.0
        if self.damaged:
            dead = ~np.isfinite(residual)
            residual[dead] = 0.0
            spread[dead] = 0.0
        there = self.work.there
        return (
            correlate(there(residual), self.taps),
            correlate(there(spread), squared(self.taps)),
        )

    def significance(self, slab: Slab) -> Any:
        """Response of the residual in standard deviations of a spot-free frame, for rows with margins."""
        response, spread = self.filtered(slab)
        return response / (spread + 1e-30) ** 0.5

    def maxima(
        self, response: Callable[[Slab], Any], low: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Voxels (n, 3) of the maxima of a response above `low`, and their heights, highest first."""

        def work(slab: Slab) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            values = response(slab)
            voxel = local_maxima(values, low)
            height = to_host(values[tuple(voxel.T)]).astype(np.float64)
            place = to_host(voxel)
            own = (place[:, 1] >= slab.core.start) & (place[:, 1] < slab.core.stop)
            return place[own] + [0, slab.first, 0], height[own]

        found = self.work.each(work, self.parts)
        place = np.concatenate([np.empty((0, 3), np.int64), *(voxel for voxel, _ in found)])
        height = np.concatenate([np.empty(0), *(value for _, value in found)])
        order = np.lexsort((*place.T[::-1], -height))
        return place[order], height[order]

    def _levels(self) -> None:
        if len(self.spots):
            self.spots[:, LEVEL] = self.ground.at(self.spots[:, Z : X + 1])
