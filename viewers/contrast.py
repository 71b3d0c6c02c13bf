"""Contrast limits of a movie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def contrast_of(frame: NDArray) -> tuple[float, float]:
    """Grey values shown as black and white: the background, and a value that few voxels exceed.

    Examples
    --------
    >>> contrast_of(np.array([[[0, 0, 9, 0]]]))
    (0.0, 9.0)
    """
    values = frame[np.isfinite(frame)] if frame.dtype.kind == "f" else frame.ravel()
    if values.size == 0:
        return 0.0, 1.0
    thinned = values[:: max(values.size // 2_000_000, 1)]
    low, high = np.quantile(thinned, [0.01, 0.999], method="nearest")
    least, most = float(values.min()), float(values.max())
    if low == high:
        low, high = least, most
    return (float(low), float(high)) if low < high else (float(low), float(low) + 1.0)
