"""Speed and memory through the public door: filter and threshold, fits, bytes a voxel.

A stack of noise alone is all filter and threshold; the same stack with separated spots shows by the
difference what a spot costs. The radius is given, so that one scale is filtered. Bytes a voxel are the most
that NumPy held at once beyond the stack, in units of its voxels.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outbid import DetectionSettings, detect

from . import optics, scmos
from .cells import Cell

SHAPE = (24, 384, 384)
SPOTS, SNR, RADIUS = 3000, 8.0, 2.5
PHOTONS = 30.0  # of the background
WORKERS = 2
REPEATS = 3
Row = dict[str, Any]


def stack(spots: int) -> tuple[NDArray[np.uint16], Cell]:
    """A stack with so many spots."""
    rng = np.random.default_rng([spots, 10])
    cell = Cell("optics", 3, RADIUS, SNR, 20.0)
    place = rng.uniform(0, np.array(SHAPE) - 1, (spots, 3)) * cell.voxel
    amplitude = np.full(spots, cell.amplitude / optics.peak(cell.sigma))
    light = optics.light_of(place, amplitude, SHAPE, cell.sigma, cell.voxel)
    return scmos.expose(PHOTONS + light, scmos.sensor(*SHAPE[1:], rng), rng), cell


def _timed(image: NDArray, settings: DetectionSettings) -> tuple[float, int]:
    """Least seconds of a few runs, and the number of spots."""
    seconds, count = [], 0
    for _ in range(REPEATS):
        start = time.perf_counter()
        count = len(detect([image], settings, workers=WORKERS)[0])
        seconds.append(time.perf_counter() - start)
    return min(seconds), count


def speed() -> Row:
    """Megavoxels a second without spots, spots a second beyond it, and bytes a voxel."""
    (noise, cell), (crowd, _) = stack(0), stack(SPOTS)
    settings = DetectionSettings(cell.radius, cell.radius * cell.sigma[0] / cell.sigma[1], spacing=cell.voxel)
    detect([crowd[:8, :96, :96]], settings)  # compiles
    without, _ = _timed(noise, settings)
    with_spots, count = _timed(crowd, settings)
    tracemalloc.start()
    detect([crowd], settings, workers=WORKERS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    voxels = noise.size
    return {
        "mvoxel_a_second": round(voxels / without / 1e6, 1),
        "spots_a_second": round(count / max(with_spots - without, 1e-9)),
        "bytes_a_voxel": round(peak / voxels, 1),
        "workers": WORKERS, "voxels": voxels, "found": count, "spots": SPOTS,
    }  # fmt: skip
