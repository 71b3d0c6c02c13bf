"""Local maxima of a response; the Laplacian of Gaussian."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

_TRUNCATE = 3.5  # standard deviations to which a Gaussian is summed


def local_maxima(values: NDArray[np.float32], low: float) -> NDArray[np.int64]:
    """(n, 3) int64: voxels above `low` that no neighbour exceeds; among equal neighbours, the first."""
    mask = values > low
    mask[:, :, 1:] &= values[:, :, 1:] > values[:, :, :-1]
    mask[:, :, :-1] &= values[:, :, :-1] >= values[:, :, 1:]
    flat, (depth, height, width) = values.ravel(), values.shape
    where = np.flatnonzero(mask)
    for step in sorted(product((-1, 0, 1), repeat=3), key=lambda step: sum(map(abs, step))):
        if step[0] == step[1] == 0:
            continue
        z, y, x = np.array(np.unravel_index(where, values.shape)) + np.array(step)[:, None]
        beyond = (z < 0) | (z >= depth) | (y < 0) | (y >= height) | (x < 0) | (x >= width)
        here, there = flat[where], flat[np.where(beyond, 0, (z * height + y) * width + x)]
        where = where[beyond | (here > there if step < (0, 0, 0) else here >= there)]
    return np.stack(np.unravel_index(where, values.shape), axis=1)


def laplacian(image: NDArray[np.float32], sigma: NDArray[np.float64]) -> NDArray[np.float32]:
    """Sum over axes of -σ² times the second derivative of the smoothed image; edge values are repeated."""
    deep = [axis for axis in range(3) if sigma[axis] > 0 and image.shape[axis] > 1]
    total = None
    for curved in deep:
        part = image
        for axis in deep:
            part = _along(part, float(sigma[axis]), axis, curved=axis == curved)
        total = part if total is None else total + part
    return image * 0 if total is None else -total


def _along(image: NDArray[np.float32], width: float, axis: int, *, curved: bool) -> NDArray[np.float32]:
    """Smoothed along an axis, or σ² times the second derivative; exact for constants and parabolas."""
    reach = max(int(_TRUNCATE * width + 0.5), 1)
    x = np.arange(-reach, reach + 1)
    taps = np.exp(-0.5 * (x / width) ** 2)
    taps /= taps.sum()
    if curved:
        taps = (x**2 / width**2 - 1) * taps - ((x**2 / width**2 - 1) * taps).sum() * taps
        taps *= 2 * width**2 / (x**2 * taps).sum()
    return correlate1d(image, taps, axis, mode="nearest")
