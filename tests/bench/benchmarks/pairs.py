"""The frame pair of the benchmarks: uniform at density 1, 5 % replaced, lengths in density^(-1/3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def frame_pair(
    count: int, displacement: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Points (N, 3) of two frames, and for each of the first its row in the second, -1 if it is replaced.

    `displacement` is the standard deviation of a step along one axis (kappa).
    """
    rng = np.random.default_rng(0)
    side = count ** (1 / 3)
    source = rng.uniform(0, side, (count, 3))
    moved = source + displacement * rng.normal(size=source.shape)
    replaced = rng.random(count) < 0.05
    moved[replaced] = rng.uniform(0, side, (int(replaced.sum()), 3))
    order = rng.permutation(count)
    where = np.empty(count, np.int64)
    where[order] = np.arange(count)
    return source, moved[order], np.where(replaced, -1, where)
