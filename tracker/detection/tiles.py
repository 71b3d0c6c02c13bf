"""Large frames in tiles of the plane, each with a margin, so that memory does not grow with the frame."""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

_VOXELS = 4_000_000
"""Guard: voxels of a tile without its margin: some 60 bytes each are in use."""
_MARGIN = 8.0
"""Guard: margin of a tile in widths: beyond them a spot has no response."""
_SIDE = 64
"""Guard: pixels that a tile has at least: a spectrum of fewer is coarse."""


class Tile(NamedTuple):
    """A part of the plane.

    Parameters
    ----------
    rows, columns : slice
        Of the frame, with the margin.
    inner : ((int, int), (int, int))
        First row and the one after the last, columns likewise, without the margin.
    share : float
        Of the part with its margin that is inner.
    """

    rows: slice
    columns: slice
    inner: tuple[tuple[int, int], tuple[int, int]]
    share: float

    @property
    def start(self) -> tuple[int, int]:
        """Row and column of the first voxel."""
        return self.rows.start, self.columns.start

    def owns(self, position: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,): which positions (n, 2) are nearest to an inner pixel of this tile."""
        low, high = np.transpose(self.inner)
        pixel = np.rint(position)
        return ((pixel >= low) & (pixel < high)).all(axis=1)


def tiles(shape: tuple[int, ...], sigma: NDArray[np.float64]) -> list[Tile]:
    """Divide a frame into tiles; they depend only on its shape and the width of spots.

    Examples
    --------
    >>> [tile.columns for tile in tiles((64, 300, 400), np.full(3, 2.0))]
    [slice(0, 216, None), slice(184, 400, None)]
    """
    margin = ceil(_MARGIN * float(max(sigma[1:])))
    side = max(sqrt(_VOXELS / shape[0]), _SIDE, 4 * margin)
    edges = [
        np.linspace(0, n, max(1, ceil(n / side - 0.25)) + 1).round().astype(int).tolist() for n in shape[1:]
    ]
    out = []
    for y0, y1 in zip(edges[0], edges[0][1:], strict=False):
        for x0, x1 in zip(edges[1], edges[1][1:], strict=False):
            rows = _extended(y0 - margin, y1 + margin, shape[1])
            columns = _extended(x0 - margin, x1 + margin, shape[2])
            area = (rows.stop - rows.start) * (columns.stop - columns.start)
            out.append(Tile(rows, columns, ((y0, y1), (x0, x1)), (y1 - y0) * (x1 - x0) / area))
    return out


def _extended(start: int, stop: int, size: int) -> slice:
    """A part of an axis, longer where that has a faster transform."""
    start, stop = max(start, 0), min(stop, size)
    long = next_fast_len(stop - start, real=True)
    if long > size:
        return slice(start, stop)
    start = min(start, size - long)
    return slice(start, start + long)
