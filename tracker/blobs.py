"""Blobs in an image: filters that answer to spots of a size, their local maxima and their noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Sigma = tuple[float, float, float]
Pass = Callable[[NDArray[np.float32], float, int, int], NDArray[np.float32]]

_TRUNCATE = 3.5  # standard deviations to which a Gaussian is summed
_DOG_RATIO = 1.6  # of the two Gaussians: nearest to the Laplacian (Marr & Hildreth 1980)


def response(
    image: NDArray[np.float32], sigma: Sigma, kind: str, pool: Executor | None = None
) -> NDArray[np.float32]:
    """What the filter called `kind` answers to bright spots.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
    sigma : tuple of 3 float
        Of the Gaussian, in voxels; where Z is 1 the first is ignored.
    kind : str
        A name in `FILTERS`.
    pool : Executor, optional
        Works on halves of the image at once; the result is the same.
    """

    def one(part: NDArray[np.float32], width: float, axis: int, order: int) -> NDArray[np.float32]:
        return ndimage.correlate1d(part, _kernel(width, order), axis, mode="nearest")

    def halved(whole: NDArray[np.float32], width: float, axis: int, order: int) -> NDArray[np.float32]:
        across = 1 if axis != 1 else 2
        parts = np.array_split(whole, 2, axis=across)
        jobs = pool.map(lambda part: one(part, width, axis, order), parts) if pool else ()
        return np.concatenate(list(jobs), axis=across)

    return FILTERS[kind](image, sigma, one if pool is None else halved)


def _kernel(width: float, order: int) -> NDArray[np.float64]:
    """A Gaussian, or its second derivative, sampled: exact for a constant, or for a parabola."""
    x = np.arange(-int(_TRUNCATE * width + 0.5), int(_TRUNCATE * width + 0.5) + 1)
    bell = np.exp(-0.5 * (x / width) ** 2)
    bell /= bell.sum()
    if order == 0:
        return bell
    curved = (x**2 / width**4 - 1 / width**2) * bell
    curved -= curved.sum() * bell  # else a constant background would be answered to
    return curved * (2 / (x**2 * curved).sum())


def _laplacian(image: NDArray[np.float32], sigma: Sigma, smooth: Pass) -> NDArray[np.float32]:
    """The negative Laplacian of Gaussian, normalised, in seven passes: no axis is smoothed twice."""
    sz, sy, sx = sigma
    flat = image.shape[0] == 1
    across = image if flat else smooth(image, sz, 0, 0)
    curved = smooth(across, sy, 1, 2) * np.float32(sy**2)
    if not flat:
        curved += smooth(smooth(image, sz, 0, 2), sy, 1, 0) * np.float32(sz**2)
    result = smooth(curved, sx, 2, 0)
    result += smooth(smooth(across, sy, 1, 0), sx, 2, 2) * np.float32(sx**2)
    return np.negative(result, out=result)


def _difference(image: NDArray[np.float32], sigma: Sigma, smooth: Pass) -> NDArray[np.float32]:
    """A difference of Gaussians, scaled to what the Laplacian answers."""
    narrow = wide = image
    for axis, width in enumerate(sigma):
        if image.shape[axis] > 1:
            narrow = smooth(narrow, width / _DOG_RATIO**0.5, axis, 0)
            wide = smooth(wide, width * _DOG_RATIO**0.5, axis, 0)
    return (narrow - wide) / np.float32(np.log(_DOG_RATIO))


FILTERS: Mapping[str, Callable[[NDArray[np.float32], Sigma, Pass], NDArray[np.float32]]] = {
    "log": _laplacian, "dog": _difference,
}  # fmt: skip
"""Filters by name."""


def noise_gain(sigma: Sigma, kind: str, *, flat: bool) -> float:
    """Standard deviation that the filter leaves of white noise with standard deviation 1."""
    size = [1 if flat and axis == 0 else 2 * int(6 * width + 1) + 1 for axis, width in enumerate(sigma)]
    impulse = np.zeros(size, dtype=np.float32)
    impulse[tuple(n // 2 for n in size)] = 1
    return float(np.sqrt(np.square(response(impulse, sigma, kind), dtype=np.float64).sum()))


def local_maxima(values: NDArray[np.float32], low: float) -> NDArray[np.int64]:
    """(n, 3) int64: voxels above `low` that no neighbour exceeds; of equal neighbours the first counts."""
    padded = np.pad(values, 1, constant_values=-np.inf)
    inner = padded[1:-1, 1:-1, 1:-1]
    mask = inner > low
    mask &= inner > padded[1:-1, 1:-1, :-2]
    mask &= inner >= padded[1:-1, 1:-1, 2:]
    flat = padded.ravel()
    _, wide_y, wide_x = padded.shape
    where = np.ravel_multi_index(tuple(axis + 1 for axis in np.nonzero(mask)), padded.shape)
    for step in sorted(product((-1, 0, 1), repeat=3), key=lambda step: sum(map(abs, step))):
        if step[0] == step[1] == 0:
            continue
        offset = (step[0] * wide_y + step[1]) * wide_x + step[2]
        here, there = flat[where], flat[where + offset]
        where = where[here > there if step < (0, 0, 0) else here >= there]
    return np.stack(np.unravel_index(where, padded.shape), axis=1) - 1


def noise_of(values: NDArray[np.float32], sigma: Sigma) -> float:
    """Root mean square of a response where there are no spots: the 5th percentile of blocks of planes."""
    wide = (
        min(max(4, round(8 * s)), max(n // 4, 1)) for n, s in zip(values.shape[1:], sigma[1:], strict=True)
    )
    size = [1, *wide]
    count = [n // b for n, b in zip(values.shape, size, strict=True)]
    cropped = values[tuple(slice(0, n * b) for n, b in zip(count, size, strict=True))]
    blocks = cropped.reshape(count[0], size[0], count[1], size[1], count[2], size[2])
    power = np.einsum("aibjck,aibjck->abc", blocks, blocks, dtype=np.float64) / np.prod(size)
    return float(np.sqrt(np.percentile(power, 5)))


def shift_to_vertex(values: NDArray[np.float32], voxel: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, 3): from each voxel to the vertex of the parabola through it and its neighbours along each axis."""
    shift = np.zeros(voxel.shape)
    for axis, size in enumerate(values.shape):
        inside = (voxel[:, axis] > 0) & (voxel[:, axis] < size - 1)
        step = np.zeros(3, dtype=np.int64)
        step[axis] = 1
        here = voxel[inside]
        before, at, after = (values[tuple((here + k * step).T)].astype(np.float64) for k in (-1, 0, 1))
        bend = before - 2 * at + after
        slope = before - after
        vertex = np.divide(slope, 2 * bend, out=np.zeros_like(bend), where=bend < 0)
        shift[inside, axis] = np.clip(vertex, -0.5, 0.5)
    return shift
