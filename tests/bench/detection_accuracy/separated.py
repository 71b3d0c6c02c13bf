"""Movies of single frames with spots far from each other and from the walls, and images without any."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from outbid.simulate.camera import Camera, expected_photons

from . import cells, optics, scmos
from .cells import Cell

APART = 10.0  # standard deviations between neighbours, and half of it to the walls
FLATNESS = 0.25  # of the sensor's spread of gains that is left after correction, as microscopes do it
FAINT, BRIGHT = 20.0, 2000.0  # photons of backgrounds


@dataclass(frozen=True, eq=False)
class Separated:
    """Expected photons of a frame with its spots.

    Parameters
    ----------
    photons : (Z, Y, X) array
    image : (Z, Y, X) array
        As it was recorded.
    truth : (n, 3) array
        In pixels of the plane.
    amplitude : (n,) array
        Photons at the focus, as the renderer takes them.
    read : (Y, X) array
        Read noise in photons.
    """

    photons: NDArray[np.float64]
    image: NDArray
    truth: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    read: NDArray[np.float64]


def scene(renderer: str, dimensions: int, radius: float, snr: float) -> Cell:
    """What a cell of the grid says of spots and voxels; its spacing is about that of the lattice."""
    return Cell(renderer, dimensions, radius, snr, APART * radius / sqrt(dimensions))


def shape_of(cell: Cell) -> tuple[int, int, int]:
    """Room for some hundred spots."""
    if cell.dimensions == 2:
        return 1, 200, 200
    return round((APART + 1) * cell.sigma[0] / cell.voxel[0]), 150, 150


def lattice(cell: Cell, rng: np.random.Generator) -> NDArray[np.float64]:
    """A spot in the middle of each box of a grid, off it by up to a pixel."""
    axes = []
    for size, voxel, sigma in zip(shape_of(cell), cell.voxel, cell.sigma, strict=True):
        count = max(1, int(size * voxel / (APART * sigma)))
        axes.append(((np.arange(count) + 0.5) / count) * size * voxel)
    place = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    place += rng.uniform(-1, 1, place.shape) * cell.voxel
    if cell.dimensions == 2:
        place[:, 0] = 0.0
    return place


def light(cell: Cell, place: NDArray[np.float64], amplitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Photons of the spots alone."""
    if cell.renderer == "optics":
        return optics.light_of(place, amplitude, shape_of(cell), cell.sigma, cell.voxel)
    total = np.zeros(shape_of(cell))
    camera = Camera(total.shape, cell.sigma, cell.snr, 0.0, cell.voxel)
    for strength in np.unique(amplitude):
        total += expected_photons(place[amplitude == strength], camera) * (strength / camera.amplitude)
    return total


def separated(cell: Cell, seed: int, spread: float = 0.0) -> Separated:
    """A frame of separated spots over an even background.

    Parameters
    ----------
    cell : Cell
        As `scene` makes it.
    seed : int
    spread : float
        Of the logarithm of their brightness; 0 is all alike.
    """
    rng = np.random.default_rng([seed, 7, *cell.name.encode()])
    place = lattice(cell, rng)
    share = optics.peak(cell.sigma) if cell.renderer == "optics" else 1.0
    amplitude = cell.amplitude / share * np.exp(spread * rng.standard_normal(len(place)))
    photons = cells.BACKGROUND[cell.renderer] + light(cell, place, amplitude)
    sensor = sensor_of(cell.renderer, photons.shape[1:], rng)
    return Separated(photons, scmos.expose(photons, sensor, rng), place, amplitude, sensor.read)


def sensor_of(renderer: str, shape: tuple[int, ...], rng: np.random.Generator) -> scmos.Sensor:
    """The sensor of a renderer: without any fault for `camera`; else corrected for its gains."""
    sensor = scmos.sensor(*shape, rng)
    if renderer == "camera":
        return scmos.Sensor(np.full(shape, scmos.GAIN), np.full(shape, scmos.OFFSET), np.zeros(shape))
    gain = scmos.GAIN + FLATNESS * (sensor.gain - scmos.GAIN)
    return scmos.Sensor(gain, sensor.offset, sensor.read)


BACKGROUNDS = ("faint", "bright", "slope", "exponential", "lump", "along z")
"""Of images without spots."""


def empty(kind: str, renderer: str, dimensions: int, seed: int) -> NDArray[np.uint16]:
    """An image without spots, from 20 to 2,000 photons.

    Parameters
    ----------
    kind : str
        One of `BACKGROUNDS`.
    renderer : {"camera", "optics"}
        Photon noise alone, or an sCMOS camera.
    dimensions : {2, 3}
    seed : int
    """
    shape = (1, 256, 256) if dimensions == 2 else (20, 128, 128)
    rng = np.random.default_rng([seed, 8, *f"{kind} {renderer} {dimensions}".encode()])
    z, y, x = (np.linspace(0, 1, n) if n > 1 else np.zeros(1) for n in shape)
    turn = rng.uniform(0, np.pi / 2)
    across = (np.cos(turn) * y[:, None] + np.sin(turn) * x) / (np.cos(turn) + np.sin(turn))
    away = ((z - 0.5 * (dimensions == 3)) ** 2)[:, None, None] + ((y - 0.4) ** 2)[:, None] + (x - 0.6) ** 2
    rise = {
        "faint": np.zeros(shape), "bright": np.ones(shape), "slope": across[None],
        "exponential": (BRIGHT ** across - 1)[None] / (BRIGHT - 1),
        "lump": np.exp(-away / (2 * 0.2**2)), "along z": z[:, None, None],
    }[kind]  # fmt: skip
    photons = np.broadcast_to(FAINT + (BRIGHT - FAINT) * rise, shape)
    return scmos.expose(photons, sensor_of(renderer, shape[1:], rng), rng)
