"""Registration: displacement between consecutive frames by cross-correlation, without links."""

from __future__ import annotations

from math import exp, gamma

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ...compute.arrays import array_module, to_host
from ...geometry.neighbours import nearest

_REACH = 8.0
"""Guard: largest shift along an axis, in spacings."""
_BLUR = 0.35
"""Prior: width of the correlation peak, in spacings."""
_SHAPE = 4.0
"""Prior: scale of density variations of the point cloud, in widths of the peak; they are filtered out."""
CLEAR = 6.0
"""Error level: least significance of a peak in standard deviations, and its excess over that of no shift."""
_LEAST_NOISE = 2.0
"""Guard: least standard deviation in pairs: if few pairs coincide, their number is not normal."""
_CELLS = 1_500_000
"""Guard: largest number of cells of the grid."""
NEAR, _STILL = 0.5, 0.4
"""Guard: distance, in spacings, and share of detections with one of the next frame within it beyond chance,
from which a frame is still: hardly another shift could fit as many."""


def frame_shifts(position: NDArray[np.float64], frame_start: NDArray[np.int64]) -> NDArray[np.float64]:
    """(F, D) displacement of each frame to the next if it is significant, else 0; the last is 0.

    Positions (N, D) are in spacings; frame f holds the rows from frame_start[f] to frame_start[f + 1].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cloud = rng.uniform(0, 20, (300, 2))
    >>> frame_shifts(np.concatenate([cloud, cloud + 3]), np.array([0, 300, 600])).round().tolist()
    [[3.0, 3.0], [0.0, 0.0]]
    """
    axes, frames = position.shape[1], len(frame_start) - 1
    shift = np.zeros((frames, axes))
    moved = np.flatnonzero(~_still(position, frame_start))
    if not len(moved):
        return shift
    position = to_host(position)
    # The correlation is circular: room for one shift keeps the ends apart. A mirror image has mirrored cells.
    middle = (position.min(axis=0) + position.max(axis=0)) / 2
    extent = np.ptp(position, axis=0) + _REACH
    cell = max(_BLUR, float((np.prod(extent) / _CELLS) ** (1 / axes)))
    reach = int(_REACH / cell)
    shape = [fft.next_fast_len(int(size), True) for size in np.ceil(extent / cell) + 1]
    passed = _band(shape)
    single = float(fft.irfftn(passed, shape).max())  # what one pair gives
    lags = np.arange(-reach, reach + 1)
    window = np.ix_(*[lags % size for size in shape])

    def transform(f: int) -> NDArray[np.complex64]:
        grid = np.zeros(shape, np.float32)
        cells = np.rint((position[frame_start[f] : frame_start[f + 1]] - middle) / cell).astype(int) % shape
        np.add.at(grid, tuple(cells.T), 1.0)
        return np.asarray(fft.rfftn(grid))

    last, after = -1, np.empty(0, np.complex64)
    for f in moved.tolist():
        earlier = after if f == last else transform(f)
        last, after = f + 1, transform(f + 1)
        overlap = fft.irfftn(np.conj(earlier) * after * passed, shape)[window] / single
        peak = np.unravel_index(overlap.argmax(), overlap.shape)
        noise = max(float(overlap.std()), _LEAST_NOISE)
        beyond = overlap[peak] - overlap[(reach,) * axes]
        if overlap[peak] > CLEAR * noise and beyond > CLEAR * noise:
            shift[f] = lags[np.array(peak)] * cell
    return shift


def _still(position: NDArray[np.float64], frame_start: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(F,) whether many detections of a frame have one of the next nearby, or there are none; the last is.

    Examples
    --------
    >>> place = np.arange(10.0)[:, None]
    >>> _still(np.concatenate([place, place + 0.1, place + 20.6]), np.array([0, 10, 20, 30])).tolist()
    [True, False, True]
    """
    many, axes = np.diff(frame_start), position.shape[1]
    rows = array_module(position).arange(int(frame_start[-2]))
    _, square = nearest(position, frame_start, rows, 1, offset=1)
    near = np.concatenate([[0], np.cumsum(to_host(square[:, 0] < NEAR**2))])
    share = np.diff(near[frame_start[:-1]]) / np.maximum(many[:-1], 1)
    # Of points at random whose mean distance is 1, so many are near by chance.
    random = 1 - exp(-((NEAR * gamma(1 + 1 / axes)) ** axes))
    still = share > random + _STILL * (1 - random)
    return np.append(still | (many[:-1] == 0) | (many[1:] == 0), True)


def _band(shape: list[int]) -> NDArray[np.float32]:
    """Band-pass filter: Fourier transform of a Gaussian one grid cell wide minus that of a wider Gaussian."""
    last = len(shape) - 1
    square = np.zeros([1] * len(shape))
    for axis, size in enumerate(shape):
        wave = np.fft.rfftfreq(size) if axis == last else np.fft.fftfreq(size)
        square = square + (wave**2).reshape([-1 if axis == other else 1 for other in range(len(shape))])
    blur, wide = np.exp(-2 * np.pi**2 * square), np.exp(-2 * np.pi**2 * square * _SHAPE**2)
    return np.asarray(blur - wide, np.float32)
