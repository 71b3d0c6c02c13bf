"""Fields: the common step of neighbours, and the variation of survival in space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..inference.blocks import in_blocks
from ..model.movie import OUTER, TINY, Movie, summed, weighted
from ..neighbours import nearest
from .field_cpu import pooled, products_of, surroundings

_INNER = 6
"""Prior: number of neighbours whose mean step is a predictor, in addition to that of 24 and of the frame."""
_POOL = 32
"""Prior: number of nearest detections, in all frames, that determine local rates of birth and death."""
_RIDGE = 20.0
"""Prior: weight, in detections, of no common step."""


@dataclass(frozen=True, eq=False)
class Fields:
    """Spatial neighbours, which are determined once.

    Parameters
    ----------
    movie : Movie
    near : (N, 24) int32 array
        Nearest detections of the same frame.
    pool : (N, 32) int32 array
        Nearest detections of all frames.
    workers : int
        Threads; they do not change the result.
    """

    movie: Movie
    near: NDArray[np.int32]
    pool: NDArray[np.int32]
    workers: int = 1

    @classmethod
    def of(cls, movie: Movie, *, pooled: bool = True, workers: int = 1) -> Fields:
        """The neighbours in a movie; those in all frames only if survival is estimated."""
        rows, whole = np.arange(len(movie)), np.array([0, len(movie)])
        near = movie.near
        if near is None:
            near, _ = nearest(movie.position, movie.frame_start, rows, OUTER, workers=workers)
        many = min(_POOL, len(movie) - 1) if pooled else 0
        if many < 1:
            return cls(movie, near, np.empty((len(movie), 0), np.int32), workers)
        pool, _ = nearest(movie.position, whole, rows, many, workers=workers)
        return cls(movie, near, pool, workers)

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
        predictor = np.empty((len(movie), 4, axes))
        unit = (1.0,) * axes

        def predict(block: tuple[int, int]) -> None:
            near, position = self.near, movie.position
            surroundings(*block, near, position, step, weight, _INNER, unit, predictor[:, :3])

        in_blocks(predict, len(movie), self.workers)
        predictor[:, 3] = self._of_frame(step, weight)
        shared, many = np.empty_like(step), predictor.shape[1]
        products = np.zeros((axes, many + 1, many + 1))
        products_of(predictor, step, weight, products)
        for d in range(axes):
            scale = products[d, many, many] / max(float(weight.sum()), TINY)
            matrix = products[d, :many, :many] + (_RIDGE * scale + TINY) * np.eye(many)
            shared[:, d] = weighted(np.linalg.solve(matrix, products[d, :many, many]), predictor[:, :, d].T)
        return shared

    def _of_frame(self, step: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, D) mean of the steps of the other detections in the frame and one zero step."""
        movie = self.movie
        own = step * weight[:, None]
        sums = np.stack([summed(movie.frame, column, movie.frames) for column in own.T], axis=1)
        count = summed(movie.frame, weight, movie.frames)
        return (sums[movie.frame] - own) / (count[movie.frame] - weight + 1)[:, None]

    def survival(self, alone: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) relative probability of a successor, pooled over neighbours with random-effects shrinkage.

        Parameters
        ----------
        alone : (N,) float64 array
            Probability that a detection has no successor, if it is not clutter.
        weight : (N,) float64 array
            Probability that it is not clutter and may have a successor.
        """
        if not self.pool.shape[1] or weight.sum() < 1:
            return np.ones(len(alone))
        total, here = np.empty_like(alone), np.empty_like(alone)

        def pool(block: tuple[int, int]) -> None:
            pooled(*block, self.pool, weight, alone, total, here)

        in_blocks(pool, len(alone), self.workers)
        total += TINY
        here /= total
        mean = float((weight * alone).sum() / weight.sum())
        sampling = mean * (1 - mean) / total
        between = max(float(np.average((here - mean) ** 2 - sampling, weights=total)), 0.0)
        rate = mean + between / (between + sampling + TINY) * (here - mean)
        return (1 - rate) / max(1 - mean, TINY)
