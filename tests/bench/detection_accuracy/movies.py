"""Movies by the second renderer: particles walk, die and are born; spots differ in brightness.

The light of a movie is even, hazy, falls off towards the walls, or comes with hot pixels; the camera is that
of `scmos`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outbid import Tracks
from outbid.simulate.motions import BrownianWalk
from outbid.simulate.walks import WalkSettings, walk

from . import cells, optics, scmos
from .cells import Cell

THIN = 1e-9  # pixels, along z of a plane, for a box has a volume
TURNOVER = 0.02  # share of the particles that die in a frame; as many are born
RADII = {2: 2.0, 3: 2.5}
LUMPS, DRIFT, HAZE = (
    4,
    0.04,
    1.5,
)  # lumps of haze, their shift in a frame over the size, light over the ground
HOT, HOT_LIGHT = 1e-3, 150.0  # share of hot pixels, and their photons
Background = Callable[[int], NDArray[np.float64]]


@dataclass(frozen=True)
class Movie:
    """One kind of movie, of frames (Z, Y, X) of this shape."""

    dimensions: int
    particles: int
    snr: float
    shape: tuple[int, int, int]

    @property
    def name(self) -> str:
        return f"{self.dimensions}D {self.particles} SNR{self.snr:g}"

    @property
    def cell(self) -> Cell:
        """What its spots look like, and their mean spacing."""
        d = self.dimensions
        size = np.prod(np.array(self.shape[3 - d :]) * ([cells.PLANE, 1, 1] if d == 3 else [1, 1]))
        return Cell("optics", d, RADII[d], self.snr, float(size / self.particles) ** (1 / d))


def walked(movie: Movie, step: float, frames: int, seed: int) -> Tracks:
    """Random walks between the middles of the outermost voxels, in pixels of the plane."""
    box = tuple(max(float(n * v - v), THIN) for n, v in zip(movie.shape, movie.cell.voxel, strict=True))
    return walk(
        WalkSettings(BrownianWalk(step), movie.particles, frames, box, "reflect", TURNOVER, TURNOVER, seed)  # type: ignore[arg-type]
    )


def brightness(track: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Of detections, over the median: each track has its own."""
    return np.exp(cells.BRIGHTNESS * rng.standard_normal(track.max() + 1))[track]


def uneven(shape: tuple[int, int, int], rng: np.random.Generator) -> Background:
    """The background of the grid, the same in each frame."""
    light = cells.uneven(shape, rng)
    return lambda _: light


def even(shape: tuple[int, int, int], rng: np.random.Generator) -> Background:
    """The same light everywhere."""
    del rng
    return lambda _: np.full(shape, cells.BACKGROUND["optics"])


def haze(shape: tuple[int, int, int], rng: np.random.Generator) -> Background:
    """Wide lumps that drift across the movie."""
    place, way = rng.uniform(-1, 1, (LUMPS, 3)), DRIFT * rng.standard_normal((LUMPS, 3))

    def light(frame: int) -> NDArray[np.float64]:
        away = [_square(shape, each) for each in place + frame * way]
        return cells.BACKGROUND["optics"] * (1 + HAZE * sum(np.exp(-8 * each) for each in away))

    return light


def falling(shape: tuple[int, int, int], rng: np.random.Generator) -> Background:
    """Light that falls off to a fifth towards the corners."""
    light = cells.BACKGROUND["optics"] / (1 + 2 * _square(shape, 0.2 * rng.uniform(-1, 1, 3) * [0, 1, 1], 0))
    return lambda _: light


def hot(shape: tuple[int, int, int], rng: np.random.Generator) -> Background:
    """Even light, and pixels of the sensor that are always bright."""
    light = np.full(shape, cells.BACKGROUND["optics"])
    light = light + HOT_LIGHT * (rng.random(shape[1:]) < HOT)
    return lambda _: light


def _square(
    shape: tuple[int, int, int], middle: NDArray[np.float64], deep: float = 1.0
) -> NDArray[np.float64]:
    """Squared distance of voxels from a place, of a box from -1 to 1; `deep` scales z."""
    z, y, x = (np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in shape)
    plane = ((y - middle[1]) ** 2)[:, None] + (x - middle[2]) ** 2
    return np.asarray(deep * ((z - middle[0]) ** 2)[:, None, None] * (len(z) > 1) + plane)


def rendered(
    movie: Movie, truth: Tracks, bright: NDArray[np.float64], rng: np.random.Generator,
    background: Callable[..., Background] = uneven,
) -> list[NDArray]:  # fmt: skip
    """What an sCMOS camera records; bright (N,) is that of each detection, over the median."""
    cell, shape, seen = movie.cell, movie.shape, truth.detections
    strength = bright * cell.amplitude / optics.peak(cell.sigma)
    sensor, ground, images = scmos.sensor(*shape[1:], rng), background(shape, rng), []
    for frame in range(int(seen.frame.max()) + 1):
        here = seen.rows_of(frame)
        light = optics.light_of(seen.position[here], strength[here], shape, cell.sigma, cell.voxel)
        images.append(scmos.expose(ground(frame) + light, sensor, rng))
    return images
