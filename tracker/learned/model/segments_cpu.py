"""Sums by index on the CPU, in the order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def summed(index: NDArray[np.integer], weight: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """(count,) sums of the weights (E,) of each index (E,)."""
    return np.asarray(np.bincount(index, weight, count), dtype=np.float64)


def of_segments(
    index: NDArray[np.integer], start: NDArray[np.int64], link: NDArray[np.int32], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(N,) sums of values (E,) by index (E,); link[start[i]:start[i + 1]] are the places of index i."""
    del link
    return summed(index, values, len(start) - 1)
