"""Flow: what its neighbours do tells where a particle goes, in a fluid, a tissue or on a moving stage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

CROWDS = (4, 8, 16, 0)
"""Neighbours to ask, the nearest so many; 0 asks the whole frame, which makes the flow a drift."""

_FRAMES = 12
"""Frames on which the number of neighbours is chosen."""
_WORTH = 0.01
"""Share of the steps' variance that a flow must explain to be believed."""


def flow_of(
    frame_start: NDArray[np.int64], position: NDArray[np.float64], step: NDArray[np.float64]
) -> tuple[NDArray[np.float64], int | None]:
    """The displacement in one frame that the neighbours' steps foretell, and how many were asked.

    A particle's own step never enters its own flow. The flow is the neighbours' mean times the slope
    of the regression of steps on such means, along each axis, so that a flow of noise comes out as 0.

    Parameters
    ----------
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    position, step : (N, axes) float64 arrays
        Where each detection is, and its step to the next frame; NaN for none.

    Returns
    -------
    (N, axes) float64 array and int or None
        0 and None where no number of neighbours explains one per cent of the variance.

    Examples
    --------
    >>> place = np.random.default_rng(0).random((500, 2))
    >>> step = np.stack([place[:, 1], 1 - place[:, 0]], axis=1)
    >>> foretold, crowd = flow_of(np.array([0, 500]), place, step)
    >>> crowd, bool(np.abs(foretold - step).mean() < 0.05)
    (4, True)
    """
    frames = np.arange(len(frame_start) - 1)
    some = frames[:: max(1, len(frames) // _FRAMES)]
    rows = (
        np.concatenate([np.arange(frame_start[f], frame_start[f + 1]) for f in some]) if len(some) else some
    )
    variance = _mean_square(step[rows])
    moving = variance > 0
    if not moving.any():
        return np.zeros_like(position), None
    best, left = None, 1 - _WORTH
    for crowd in CROWDS:
        mean = _neighbours(frame_start, position, step, some, crowd)[rows]
        unexplained = _mean_square(step[rows] - _slope(step[rows], mean) * mean)
        rest = float((unexplained[moving] / variance[moving]).mean())
        if rest < left:
            best, left = crowd, rest - _WORTH
    if best is None:
        return np.zeros_like(position), None
    mean = _neighbours(frame_start, position, step, frames, best)
    return _slope(step, mean) * mean, best


def _mean_square(step: NDArray[np.float64]) -> NDArray[np.float64]:
    known = ~np.isnan(step[:, 0])
    return (step[known] ** 2).sum(axis=0) / max(known.sum(), 1)


def _slope(step: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """(axes,) slope of the steps on the means, from 0 to 1."""
    known = ~np.isnan(step[:, 0])
    slope = (step[known] * mean[known]).sum(axis=0) / np.maximum((mean[known] ** 2).sum(axis=0), 1e-300)
    return np.clip(slope, 0.0, 1.0)


def _neighbours(
    frame_start: NDArray[np.int64],
    position: NDArray[np.float64],
    step: NDArray[np.float64],
    frames: NDArray[np.int64],
    crowd: int,
) -> NDArray[np.float64]:
    """(N, axes) mean step of each detection's neighbours, itself left out; 0 where there are too few."""
    mean = np.zeros_like(position)
    for frame in frames:
        rows = np.arange(frame_start[frame], frame_start[frame + 1])
        known = rows[~np.isnan(step[rows, 0])]
        asked = min(crowd + 1 if crowd else len(known), len(known))
        if asked < 4:
            continue
        if crowd == 0:
            own = np.nan_to_num(step[rows])
            mean[rows] = (step[known].sum(axis=0) - own) / (len(known) - ~np.isnan(step[rows]))
            continue
        _, near = cKDTree(position[known]).query(position[rows], asked)
        other = known[near] != rows[:, None]
        # Where the particle itself has no step the farthest of the neighbours is one too many.
        other[other.all(axis=1), -1] = False
        mean[rows] = (step[known][near] * other[:, :, None]).sum(axis=1) / (asked - 1)
    return mean
