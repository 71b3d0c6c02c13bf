"""Blobs in an image: filters that answer to spots of a size, their local maxima and their noise.

Images live on the host or on a GPU; all but `noise_gain`, which needs none, works where its image is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from itertools import product
from math import log, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module, ndimage_module

Sigma = tuple[float, float, float]

_TRUNCATE = 3.5  # standard deviations to which a Gaussian is summed
_DOG_RATIO = 1.6  # of the two Gaussians: nearest to the Laplacian (Marr & Hildreth 1980)


class Taps(NamedTuple):
    """What an image is correlated with along one axis: `factor` times a Gaussian, or its second derivative.

    The derivative is multiplied by the square of the width; a width of 0 leaves the image as it is.
    """

    width: float
    order: int = 0
    factor: float = 1.0

    def values(self) -> NDArray[np.float64]:
        """Sampled: exact for a constant, or for a parabola."""
        reach = int(_TRUNCATE * self.width + 0.5)
        if self.width == 0:
            return np.array([self.factor])
        x = np.arange(-reach, reach + 1)
        bell = np.exp(-0.5 * (x / self.width) ** 2)
        bell /= bell.sum()
        if self.order == 0:
            return self.factor * bell
        curved = (x**2 / self.width**2 - 1) * bell
        curved -= curved.sum() * bell  # else a constant background would be answered to
        return self.factor * curved * (2 * self.width**2 / (x**2 * curved).sum())


Term = tuple[Taps, Taps, Taps]


def _laplacian(sigma: Sigma, flat: bool) -> list[Term]:
    """The negative Laplacian of Gaussian, normalised: each axis curved in turn, the others smoothed."""
    z, y, x = (Taps(0.0 if flat and axis == 0 else width) for axis, width in enumerate(sigma))
    terms = [(z, Taps(y.width, 2), x._replace(factor=-1.0)), (z, y, Taps(x.width, 2, -1.0))]
    return terms if flat else [(Taps(z.width, 2), y, x._replace(factor=-1.0)), *terms]


def _difference(sigma: Sigma, flat: bool) -> list[Term]:
    """A difference of Gaussians, scaled to what the Laplacian answers."""
    terms = []
    for share, sign in ((_DOG_RATIO**-0.5, 1.0), (_DOG_RATIO**0.5, -1.0)):
        z, y, x = (Taps(0.0 if flat and axis == 0 else share * width) for axis, width in enumerate(sigma))
        terms.append((z, y, x._replace(factor=sign / log(_DOG_RATIO))))
    return terms


FILTERS: Mapping[str, Callable[[Sigma, bool], list[Term]]] = {"log": _laplacian, "dog": _difference}
"""Filters by name: what they are the sum of, for a width of the Gaussian and whether images are flat."""


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
        Works on halves of the image at once, on the host; the result is the same.
    """
    # Passes that terms have in common are done once: what differs in y or x alone shares those along z,
    # and what is smoothed alike along x is added before.
    along_z: dict[Taps, NDArray[np.float32]] = {}
    before_x: dict[Taps, NDArray[np.float32]] = {}
    for z, y, x in FILTERS[kind](sigma, image.shape[0] == 1):
        if z not in along_z:
            along_z[z] = _pass(image, z, 0, pool)
        part = _pass(along_z[z], y, 1, pool)
        before_x[x] = before_x[x] + part if x in before_x else part
    del along_z, part
    first, *others = [_pass(before_x.pop(x), x, 2, pool) for x in list(before_x)]
    for other in others:
        first += other
    return first


def _pass(image: NDArray[np.float32], taps: Taps, axis: int, pool: Executor | None) -> NDArray[np.float32]:
    """The image correlated along one axis."""
    if taps == Taps(0.0):
        return image
    xp, ndimage = array_module(image), ndimage_module(image)
    values, result = xp.asarray(taps.values()), xp.empty_like(image)
    across = 1 if axis != 1 else 2
    halves = [xp.array_split(whole, 2 if pool else 1, axis=across) for whole in (image, result)]

    def work(part: NDArray[np.float32], answer: NDArray[np.float32]) -> None:
        ndimage.correlate1d(part, values, axis, output=answer, mode="nearest")

    list(pool.map(work, *halves) if pool else map(work, *halves))
    return result


def noise_gain(sigma: Sigma, kind: str, *, flat: bool) -> float:
    """Standard deviation that the filter leaves of white noise with standard deviation 1.

    The square root of Σ Σ Π_a <k_ia, k_ja> over all pairs i, j of the filter's terms.
    """
    terms = [[taps.values() for taps in term] for term in FILTERS[kind](sigma, flat)]
    return sum(
        prod(_overlap(a, b) for a, b in zip(one, other, strict=True)) for one, other in product(terms, terms)
    ) ** 0.5  # fmt: skip


def _overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Scalar product of two samplings around a common centre."""
    short, long = sorted((a, b), key=len)
    start = (len(long) - len(short)) // 2
    return float(short @ long[start : start + len(short)])


def local_maxima(values: NDArray[np.float32], low: float) -> NDArray[np.int64]:
    """(n, 3) int64: voxels above `low` that no neighbour exceeds; of equal neighbours the first counts."""
    xp = array_module(values)
    padded = xp.pad(values, 1, constant_values=-np.inf)
    inner = padded[1:-1, 1:-1, 1:-1]
    mask = inner > low
    mask &= inner > padded[1:-1, 1:-1, :-2]
    mask &= inner >= padded[1:-1, 1:-1, 2:]
    flat = padded.ravel()
    _, wide_y, wide_x = padded.shape
    z, y, x = xp.nonzero(mask)
    where = ((z + 1) * wide_y + y + 1) * wide_x + x + 1
    for step in sorted(product((-1, 0, 1), repeat=3), key=lambda step: sum(map(abs, step))):
        if step[0] == step[1] == 0:
            continue
        offset = (step[0] * wide_y + step[1]) * wide_x + step[2]
        here, there = flat[where], flat[where + offset]
        where = where[here > there if step < (0, 0, 0) else here >= there]
    return xp.stack([where // (wide_y * wide_x), where // wide_x % wide_y, where % wide_x], axis=1) - 1


def noise_of(values: NDArray[np.float32], sigma: Sigma) -> float:
    """Root mean square of a response where there are no spots: the 5th percentile of blocks of planes."""
    xp = array_module(values)
    wide = (
        min(max(4, round(8 * s)), max(n // 4, 1)) for n, s in zip(values.shape[1:], sigma[1:], strict=True)
    )
    size = [1, *wide]
    count = [n // b for n, b in zip(values.shape, size, strict=True)]
    cropped = values[tuple(slice(0, n * b) for n, b in zip(count, size, strict=True))]
    blocks = cropped.reshape(count[0], size[0], count[1], size[1], count[2], size[2])
    power = xp.einsum("aibjck,aibjck->abc", blocks, blocks, dtype=np.float64) / float(np.prod(size))
    return float(xp.sqrt(xp.percentile(power, 5)))


def shift_to_vertex(values: NDArray[np.float32], voxel: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, 3): from each voxel to the vertex of the parabola through it and its neighbours along each axis."""
    xp = array_module(values)
    shift = xp.zeros(voxel.shape)
    for axis, size in enumerate(values.shape):
        if size < 3:
            continue
        # Beside a wall there is no neighbour: the next voxel is asked, and the shift left at 0.
        here = list(voxel.T)
        middle = xp.clip(here[axis], 1, size - 2)
        before, at, after = (
            values[(*here[:axis], middle + step, *here[axis + 1 :])].astype(np.float64) for step in (-1, 0, 1)
        )
        bend = before - 2 * at + after
        bent = (bend < 0) & (middle == here[axis])
        vertex = (before - after) / xp.where(bent, 2 * bend, 1.0)
        shift[:, axis] = xp.where(bent, xp.clip(vertex, -0.5, 0.5), 0.0)
    return shift
