"""The grid on which detection is judged, and the images of its cells, by two renderers that share no code.

Lengths are in pixels of the plane. R is the radius of a spot, √d times the standard deviation of its core in
the plane; a scene of spacing s has a spot in every s² pixels of a plane, or s³ of a volume, placed at random
without regard to others. Spots beyond the walls shine into the image; whether they are found counts for
nothing. SNR is A / √(A + B + read²) for a median spot of A photons at its peak over B of the background.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from outbid.particles.detections import Detections
from outbid.simulate.camera import Camera, render

from . import nuclei, optics, scmos

SEEDS = 10
RADII = (1.5, 3.0, 6.0, 8.0)
SNRS = (2.0, 3.0, 4.0, 7.0)
SPACINGS = {1.5: (1.5, 3, 6, 12, 20), 3.0: (3, 6, 12, 20), 6.0: (6, 12, 20), 8.0: (8, 12, 20)}
"""From R to 20 pixels."""
FULL = 2.0  # a volume with a spot in less than so many voxels is left out
PLANE = 3.0  # distance of planes over the size of a pixel
SPOTS = 100  # about so many in an image
WALL = 2.0  # spots this many standard deviations beyond a wall are drawn
BACKGROUND = {"camera": 10.0, "optics": 30.0}  # photons a voxel
SLOPE = 0.4  # of the background: from 1 - SLOPE of it to 1 + SLOPE, across the image
HAZE = 0.3  # and a lump in the middle, as much of it higher
BRIGHTNESS = 0.4  # spread of the logarithm of spots' brightness
FOCUS = 0.3  # spread of spots about the focus in a single plane, in standard deviations along z
CAMERA_RATIO = 2.5  # standard deviation along z over that in the plane, of the project's renderer


@dataclass(frozen=True)
class Cell:
    """One kind of image.

    Parameters
    ----------
    renderer : {"camera", "optics"}
        `outbid.simulate.camera`, or Gibson-Lanni optics before an sCMOS camera.
    dimensions : {2, 3}
    radius, snr, spacing : float
    kind : {"points", "8 bit", "bodies"}
    """

    renderer: str
    dimensions: int
    radius: float
    snr: float
    spacing: float
    kind: str = "points"

    @property
    def name(self) -> str:
        """As rows are called in records."""
        kind = "" if self.kind == "points" else f" {self.kind}"
        return f"{self.renderer}{kind} {self.dimensions}D R{self.radius:g} SNR{self.snr:g} s{self.spacing:g}"

    @property
    def sigma(self) -> tuple[float, float, float]:
        """Standard deviations of a spot's core along z, y, x."""
        wide = self.radius / sqrt(self.dimensions)
        ratio = CAMERA_RATIO if self.renderer == "camera" else optics.profile().ratio
        return (wide if self.kind == "bodies" else ratio * wide, wide, wide)

    @property
    def voxel(self) -> tuple[float, float, float]:
        return (1.0 if self.dimensions == 2 else PLANE, 1.0, 1.0)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels: enough for about a hundred spots."""
        if self.dimensions == 2:
            side = round(min(max(sqrt(SPOTS) * self.spacing, 96), 200))
            return 1, side, side
        planes, side = (12, 64) if self.radius < 5 else (24, 96)
        side = min(max(sqrt(SPOTS * self.spacing**3 / (planes * PLANE)), side), 160)
        return planes, round(side), round(side)

    @property
    def amplitude(self) -> float:
        """Photons at the peak of a median spot."""
        noise = BACKGROUND[self.renderer] + (scmos.READ**2 if self.renderer == "optics" else 0)
        return (self.snr**2 + self.snr * sqrt(self.snr**2 + 4 * noise)) / 2

    @property
    def grey(self) -> float:
        """Grey values of a photon; those of 8 bits depend on the image."""
        return scmos.GAIN


@dataclass(frozen=True, eq=False)
class View:
    """An image and its truth.

    Parameters
    ----------
    image : (Z, Y, X) array
    truth, outside : (n, 3) arrays
        z, y, x in pixels of the plane; inside the image, and beyond its walls.
    brightness : (n,) array
        Of the spots inside, over the median.
    """

    image: NDArray
    truth: NDArray[np.float64]
    outside: NDArray[np.float64]
    brightness: NDArray[np.float64]


def cells() -> Iterator[Cell]:
    """The grid, and beside it scenes that no peer's model fits either."""
    for renderer in ("camera", "optics"):
        for dimensions in (2, 3):
            for radius in RADII:
                for spacing in SPACINGS[radius]:
                    if dimensions == 3 and spacing**3 < FULL * PLANE:
                        continue
                    for snr in SNRS:
                        yield Cell(renderer, dimensions, radius, snr, float(spacing))
    for dimensions in (2, 3):
        for snr in (4.0, 7.0):
            for spacing in (16.0, 22.0):
                yield Cell("optics", dimensions, 8.0, snr, spacing, "bodies")
            yield Cell("optics", dimensions, 3.0, snr, 12.0, "8 bit")


def view(cell: Cell, seed: int) -> View:
    """The image of a cell, from its seed."""
    rng = np.random.default_rng([seed, *cell.name.encode()])
    place = _placed(cell, rng)
    bright = np.exp(BRIGHTNESS * rng.standard_normal(len(place)))
    if cell.renderer == "camera":
        bright[:] = 1.0
        image = _by_the_project(cell, place, int(rng.integers(2**31)))
    else:
        image = picture(cell, place, bright, rng)
    high = (np.array(cell.shape) - 0.5) * cell.voxel
    inside = ((place >= -0.5 * np.array(cell.voxel)) & (place < high)).all(axis=1)
    return View(image, place[inside], place[~inside], bright[inside])


def _placed(cell: Cell, rng: np.random.Generator) -> NDArray[np.float64]:
    """Spots inside, and a little beyond the walls."""
    size = (np.array(cell.shape) - 1) * cell.voxel
    beyond = WALL * np.array(cell.sigma)
    low, high = -beyond, size + beyond
    if cell.dimensions == 2:
        low[0] = high[0] = 0.0
    count = rng.poisson(np.prod((high - low)[3 - cell.dimensions :]) / cell.spacing**cell.dimensions)
    if cell.kind == "bodies":
        return nuclei.apart(count, low, high, nuclei.NEAREST * cell.spacing, rng)
    return rng.uniform(low, high, (count, 3))


def _by_the_project(cell: Cell, place: NDArray[np.float64], seed: int) -> NDArray[np.uint16]:
    """The project's own renderer: Gaussian spots, all alike, photon noise, an even background."""
    camera = Camera(cell.shape, cell.sigma, cell.snr, BACKGROUND["camera"], cell.voxel)
    spots = Detections.from_table(np.zeros(len(place), int), place)
    return next(render(spots, camera, frames=range(1), seed=seed))


def picture(
    cell: Cell, place: NDArray[np.float64], bright: NDArray[np.float64], rng: np.random.Generator
) -> NDArray:
    """The other renderer: what a sCMOS camera records of points or bodies.

    Parameters
    ----------
    cell : Cell
    place : (n, 3) array
        In pixels of the plane.
    bright : (n,) array
        Over the median.
    rng : Generator
    """
    if cell.kind == "bodies":
        light = nuclei.bodies(place, cell.amplitude * bright, cell.shape, cell.radius, cell.voxel, rng)
    else:
        drawn = place.copy()
        if cell.dimensions == 2:
            drawn[:, 0] = FOCUS * cell.sigma[0] * rng.standard_normal(len(place))
        strength = cell.amplitude * bright / optics.peak(cell.sigma)
        light = optics.light_of(drawn, strength, cell.shape, cell.sigma, cell.voxel)
    camera = scmos.sensor(*cell.shape[1:], rng)
    seen = scmos.expose(light + uneven(cell.shape, rng), camera, rng)
    return scmos.eight_bit(seen) if cell.kind == "8 bit" else seen


def uneven(shape: tuple[int, int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    """Photons of a background that rises across the image, with a lump of haze."""
    z, y, x = (np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in shape)
    turn, middle = rng.uniform(0, 2 * np.pi), rng.uniform(-0.5, 0.5, 3)
    slope = (np.cos(turn) * y[:, None] + np.sin(turn) * x) / np.sqrt(2)
    away = ((z - middle[0]) ** 2)[:, None, None] + ((y - middle[1]) ** 2)[:, None] + (x - middle[2]) ** 2
    return BACKGROUND["optics"] * (1 + SLOPE * slope + HAZE * np.exp(-2 * away))
