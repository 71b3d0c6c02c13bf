"""Matched filter, with zeros beyond the borders, and its local maxima.

Images are on the host or on a GPU; all functions work on the device of their image.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module, ndimage_module, on_device
from .response_cpu import along, along_rows

Taps = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Filter kernels along z, y and x."""

_REACH = 3.2  # standard deviations to which a Gaussian is summed: 1 % of its weight is beyond
_SLAB = 1 << 18  # voxels that are worked on at once: few enough for their copies to be small beside a frame


class Slab(NamedTuple):
    """Rows of a frame in all planes; `first` and `last` include the margins that filters need."""

    start: int
    stop: int
    first: int
    last: int

    @property
    def wide(self) -> slice:
        """The rows including the margins."""
        return slice(self.first, self.last)

    @property
    def near(self) -> slice:
        """The rows, with one more on either side."""
        return slice(max(self.start - 1, self.first), min(self.stop + 1, self.last))

    @property
    def inside(self) -> slice:
        """The near rows, relative to the wide ones."""
        return slice(self.near.start - self.first, self.near.stop - self.first)

    @property
    def core(self) -> slice:
        """The rows, relative to the near ones."""
        return slice(self.start - self.near.start, self.stop - self.near.start)


def slabs(shape: tuple[int, ...], reach: int, edges: NDArray[np.int64]) -> Iterator[Slab]:
    """Divide a frame into slabs of rows from edge to edge; they depend only on the shape of the frame.

    Examples
    --------
    >>> [slab.wide for slab in slabs((1, 500, 1024), 9, np.arange(0, 501, 4))]
    [slice(0, 265, None), slice(247, 500, None)]
    """
    planes, height, width = shape
    rows, start = max(_SLAB // (planes * width), 4 * reach), 0
    while start < height:
        last = np.searchsorted(edges, start + rows, side="right") - 1
        after = np.searchsorted(edges, start) + 1
        stop = int(edges[max(last, after)])
        yield Slab(start, stop, max(start - reach, 0), min(stop + reach, height))
        start = stop


def bell(width: float, power: float = 1.0, reach: float = _REACH) -> NDArray[np.float64]:
    """A sampled Gaussian with peak 1, raised to a power; the identity if its width is 0."""
    if width == 0:
        return np.ones(1)
    last = max(1, ceil(reach * width))
    return np.exp(-0.5 * power * (np.arange(-last, last + 1) / width) ** 2)


def bells(sigma: NDArray[np.float64]) -> Taps:
    """A Gaussian along each axis."""
    z, y, x = (bell(float(width)) for width in sigma)
    return z, y, x


def correlate(values: NDArray, taps: Taps, rows: slice | None = None) -> NDArray:
    """Correlate along each axis, with zeros beyond the borders; of all rows y or some."""
    rows = rows or slice(0, values.shape[1])
    for axis in (1, 0, 2):
        weights = taps[axis]
        if len(weights) > 1:
            values = _along(values, weights, axis, rows if axis == 1 else slice(0, values.shape[1]))
        elif axis == 1 and rows != slice(0, values.shape[1]):
            values = values[:, rows]
        if len(weights) == 1 and weights[0] != 1:
            values = values * values.dtype.type(weights[0])
    return values


def _along(values: NDArray, weights: NDArray[np.float64], axis: int, rows: slice) -> NDArray:
    """Correlate along one axis; on the host with kernels several times as fast as SciPy's."""
    if on_device(values):
        xp, ndimage = array_module(values), ndimage_module(values)
        return ndimage.correlate1d(values, xp.asarray(weights), axis, mode="constant")[:, rows]
    values, taps = np.ascontiguousarray(values), weights.astype(values.dtype)
    depth, _, width = values.shape
    out = np.empty((depth, rows.stop - rows.start, width), values.dtype)
    if axis == 2:
        along_rows(values.reshape(-1, width), taps, out.reshape(-1, width))
    elif axis == 1:
        along(values, taps, out, rows.start)
    else:
        along(values.reshape(1, depth, -1), taps, out.reshape(1, depth, -1), 0)
    return out


def local_maxima(values: NDArray[np.float32], low: float) -> NDArray[np.int64]:
    """(n, 3) int64: voxels above `low` that no neighbour exceeds; among equal neighbours, the first."""
    xp = array_module(values)
    mask = values > low
    mask[:, :, 1:] &= values[:, :, 1:] > values[:, :, :-1]
    mask[:, :, :-1] &= values[:, :, :-1] >= values[:, :, 1:]
    flat, (depth, height, width) = values.ravel(), values.shape
    where = xp.flatnonzero(mask)
    for step in sorted(product((-1, 0, 1), repeat=3), key=lambda step: sum(map(abs, step))):
        if step[0] == step[1] == 0:
            continue
        z, y, x = (
            where // (height * width) + step[0],
            where // width % height + step[1],
            where % width + step[2],
        )
        beyond = (z < 0) | (z >= depth) | (y < 0) | (y >= height) | (x < 0) | (x >= width)
        here, there = flat[where], flat[xp.where(beyond, 0, (z * height + y) * width + x)]
        where = where[beyond | (here > there if step < (0, 0, 0) else here >= there)]
    return xp.stack([where // (width * height), where // width % height, where % width], axis=1)
