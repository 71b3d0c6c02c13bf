"""Bodies instead of points: ellipsoids in random directions, with texture and a soft edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial.transform import Rotation

AXES = (0.75, 1.3)  # shortest and longest half axis over the radius
TEXTURE, GRAIN = 0.35, 0.3  # spread of the logarithm of the brightness; size of its lumps over the radius
EDGE = 1.0  # blur of the optics in the plane, in pixels; three times as much along z
NEAREST = 0.75  # least distance of two centres over the spacing


def bodies(
    place: NDArray[np.float64],
    amplitude: NDArray[np.float64],
    shape: tuple[int, int, int],
    radius: float,
    voxel: tuple[float, float, float],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Expected light of bodies in each voxel.

    Parameters
    ----------
    place : (n, 3) array
        Centres z, y, x in pixels of the plane.
    amplitude : (n,) array
        Mean brightness of each.
    shape : tuple of 3 int
    radius : float
        In pixels of the plane.
    voxel : tuple of 3 float
    rng : Generator
    """
    grain = np.full(3, GRAIN * radius) / voxel
    lumps = gaussian_filter(rng.standard_normal(shape), grain, mode="wrap")
    texture = np.exp(TEXTURE * lumps / lumps.std() - TEXTURE**2 / 2)
    flat = shape[0] == 1
    image = np.zeros(shape)
    reach = AXES[1] * radius * 1.1
    for centre, brightness in zip(place, amplitude, strict=True):
        low = np.maximum(np.floor((centre - reach) / voxel).astype(int), 0)
        stop = np.minimum(np.ceil((centre + reach) / voxel).astype(int) + 1, shape)
        axes = radius * rng.uniform(*AXES, 3)
        turn = Rotation.random(None, rng).as_matrix()
        if flat:
            axes[0], turn = radius, Rotation.from_euler("x", rng.uniform(0, np.pi)).as_matrix()
        if (low >= stop).any():
            continue
        window = tuple(slice(a, b) for a, b in zip(low, stop, strict=True))
        grid = np.stack(
            np.meshgrid(*(np.arange(a, b) for a, b in zip(low, stop, strict=True)), indexing="ij")
        )
        away = np.moveaxis(grid, 0, -1) * voxel - centre
        if flat:
            away[..., 0] = 0.0
        inside = (((away @ turn) / axes) ** 2).sum(axis=-1) < 1
        image[window] = np.maximum(image[window], brightness * inside)
    return gaussian_filter(image * texture, np.array([0.0 if flat else 3 * EDGE, EDGE, EDGE]) / voxel)


def apart(
    count: int, low: NDArray[np.float64], high: NDArray[np.float64], least: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Up to `count` points of a box that keep a distance, one after the other."""
    kept = np.empty((0, 3))
    for point in rng.uniform(low, high, (30 * count, 3)):
        if len(kept) == count:
            break
        if not len(kept) or np.min(((kept - point) ** 2).sum(axis=1)) >= least**2:
            kept = np.concatenate([kept, point[None]])
    return kept
