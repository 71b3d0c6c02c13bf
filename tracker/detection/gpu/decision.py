"""Which candidates of many frames are spots; see `decision.decide`."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import cupy_module, to_device
from ...compute.cuda import cuda_function
from ...compute.tolerances import TINY
from ..decision import (
    _HEIGHTS,
    _NUMBER,
    _PRESENT,
    _STARTS,
    _UNEQUAL,
    _UNEQUAL_BY,
    _WIDER,
)
from .modes import noise_above
from .rows import starts

SOURCE = "detection/gpu/decision.cu"


def _slopes(values, height):
    """Slopes of rows of values, as `np.gradient` has them."""
    inner = (values[:, 2:] - values[:, :-2]) / (height[:, 2:] - height[:, :-2])
    ends = [(values[:, b] - values[:, a]) / (height[:, b] - height[:, a]) for a, b in ((0, 1), (-2, -1))]
    return cupy_module().concatenate([ends[0][:, None], inner, ends[1][:, None]], axis=1)


def decided(u, frame, least, volumes, curvatures, fdr):
    """Rows in the order of frames, the most significant first; probabilities (n,), and how many are kept.

    Parameters
    ----------
    u, frame : (n,) float64 and int32 array
        Significances of candidates, and their frames.
    least : (F,) float64 array on the host
        Significance above which the candidates of each frame are complete.
    volumes, curvatures : (F, tiles) and (F, tiles, 3) float64 array on the host
        Voxels of each frame's tiles that are their own; their responses, see `spectrum.Maxima`.
    fdr : float or None
    """
    xp, frames = cupy_module(), len(least)
    order = xp.argsort(-u)
    order = order[xp.argsort(frame[order].astype(np.int64) * len(u) + xp.arange(len(u)))]
    height = to_device(least[:, None] / 2 + (least[:, None] / 2 + 40) * np.linspace(0, 1, _HEIGHTS))
    volumes, curvatures = to_device(volumes), to_device(curvatures)
    number = sum(
        noise_above(volumes[:, tile, None], curvatures[:, tile], height) for tile in range(volumes.shape[1])
    )
    density = xp.log(xp.maximum(-_slopes(number, height), 1e-300))
    noise = xp.stack([height, number, density, _slopes(density, height)])
    given = (
        u[order], starts(frame[order], frames), to_device(least), noise, np.int32(frames), np.int32(_HEIGHTS)
    )  # fmt: skip
    theta, loss = xp.zeros((frames, 4, 5)), xp.zeros((frames, 4))
    limits = _WIDER, _NUMBER, _UNEQUAL, _UNEQUAL_BY, TINY
    cuda_function(SOURCE, "fit_mixtures")(
        (4 * frames,), (128,), (*given, to_device(np.array(_STARTS)), *map(np.float64, limits), theta, loss)
    )
    probability, keep = xp.empty(len(u)), xp.empty(frames, np.int64)
    rates = np.float64(_PRESENT), np.float64(-1 if fdr is None else fdr)
    cuda_function(SOURCE, "choose")((frames,), (128,), (*given, theta, loss, *rates, probability, keep))
    return order, probability, keep
