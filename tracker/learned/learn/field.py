"""Fields: the common step of neighbours, and the variation of survival in space."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import ROW, Arrays, array_module, kernels, to_host
from ...compute.tolerances import TINY
from ...geometry.neighbours import nearest
from ..inference.blocks import in_blocks
from ..model.movie import NEIGHBOURS, OUTER, Movie, summed, weighted

_RIDGE = 20.0
"""Prior: weight, in detections, of no common step."""


@dataclass(frozen=True, eq=False)
class Fields(Arrays):
    """Spatial neighbours, which are determined once.

    Parameters
    ----------
    movie : Movie
    near : (N, 24) int32 array
        Nearest detections of the same frame; (N, 0) if there is no flow.
    cell : (N,) int64 array
        The cell of space that holds each detection; with those that touch it, it holds some 24 of all frames.
    grid : tuple of int
        Number of cells along each axis.
    """

    movie: Movie
    near: NDArray[np.int32] = field(metadata=ROW)
    cell: NDArray[np.int64] = field(metadata=ROW)
    grid: tuple[int, ...]

    @classmethod
    def of(cls, movie: Movie, *, flows: bool = True) -> Fields:
        """The neighbours in a movie; none if nothing flows."""
        rows, near = array_module(movie.frame).arange(len(movie)), movie.near
        if not flows:
            near = np.empty((len(movie), 0), np.int32)
        elif near is None:
            near, _ = nearest(movie.position, movie.frame_start, rows, OUTER)
        return cls(movie, near, *cells(movie.position))

    def flow(self, step: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, D) step predicted by neighbours: ridge regression of own steps on predictors from others.

        Parameters
        ----------
        step : (N, D) float64 array
            Raw displacements to the next frame: posterior means would feed back on themselves.
        weight : (N,) float64 array
            Probability that a detection makes this step.
        """
        movie, axes = self.movie, self.movie.axes
        if not self.near.shape[1]:
            return np.zeros_like(step)
        predictor = np.empty_like(step, shape=(len(movie), 4, axes))
        on = kernels("outbid.learned.learn.field", step)

        def predict(block: tuple[int, int]) -> None:
            near, position = self.near, movie.position
            on.surroundings(*block, near, position, step, weight, NEIGHBOURS, predictor)

        in_blocks(predict, len(movie), step)
        predictor[:, 3] = self._of_frame(step, weight)
        shared, many = np.empty_like(step), predictor.shape[1]
        products = np.zeros((axes, many + 1, many + 1))
        on.products_of(predictor, step, weight, products)
        for d in range(axes):
            scale = products[d, many, many] / max(float(weight.sum()), TINY)
            matrix = products[d, :many, :many] + (_RIDGE * scale + TINY) * np.eye(many)
            share = array_module(step).asarray(np.linalg.solve(matrix, products[d, :many, many]))
            shared[:, d] = weighted(share, predictor[:, :, d].T)
        return shared

    def _of_frame(self, step: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, D) mean of the steps of the other detections in the frame and one zero step."""
        movie = self.movie
        own = step * weight[:, None]
        sums = np.stack([summed(movie.frame, column, movie.frames) for column in own.T], axis=1)
        count = summed(movie.frame, weight, movie.frames)
        return (sums[movie.frame] - own) / (count[movie.frame] - weight + 1)[:, None]

    def survival(self, ended: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) relative probability of a successor, pooled over cells with random-effects shrinkage.

        Parameters
        ----------
        ended : (N,) float64 array
            Probability that a detection has no successor, if it is not clutter.
        weight : (N,) float64 array
            Probability that it is not clutter and may have a successor.
        """
        if weight.sum() < 1:
            return np.ones_like(ended)
        # Its own end would confirm itself, so it does not count.
        total, here = (pooled(self.cell, self.grid, part) - part for part in (weight, weight * ended))
        total = np.maximum(total, 0) + TINY
        here /= total
        mean = float((weight * ended).sum() / weight.sum())
        sampling = mean * (1 - mean) / total
        between = max(float(np.average((here - mean) ** 2 - sampling, weights=total)), 0.0)
        rate = mean + between / (between + sampling + TINY) * (here - mean)
        return (1 - rate) / max(1 - mean, TINY)


def cells(position: NDArray[np.float64]) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """(N,) cell of each place, and the shape of the grid: a cell and those that touch it hold some 24 places.

    Examples
    --------
    >>> cell, shape = cells(np.arange(96.0)[:, None])
    >>> np.bincount(cell).tolist(), shape
    ([8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8], (12,))
    """
    count, axes = position.shape
    extent = to_host(np.maximum(np.ptp(position, axis=0), TINY)) if count else np.ones(axes)
    share = OUTER / max(count, 1)
    edge = max(float((np.prod(extent) * share) ** (1 / axes)), float(extent.max()) * share)
    shape = tuple(max(round(3 * size / edge), 1) for size in extent.tolist())
    cell = array_module(position).zeros(count, np.int64)
    for values, size, many in zip(position.T, extent.tolist(), shape, strict=True):
        at = ((values - (values.min() if count else 0)) / size * many).astype(np.int64)
        cell = cell * many + np.minimum(at, many - 1)
    return cell, shape


def pooled(
    cell: NDArray[np.int64], shape: tuple[int, ...], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(N,) sums of weights (N,) over the cell of each and those that touch it.

    Examples
    --------
    >>> pooled(np.array([0, 1, 2, 3]), (4,), np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [3.0, 6.0, 9.0, 7.0]
    """
    sums = summed(cell, weight, int(np.prod(shape))).reshape(shape)
    for axis in range(len(shape)):
        before = (slice(None),) * axis
        later, earlier, one = (*before, slice(1, None)), (*before, slice(-1)), sums.copy()
        sums[later] += one[earlier]
        sums[earlier] += one[later]
    return sums.ravel()[cell]
