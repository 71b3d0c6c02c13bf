"""Movies that are recorded while a test runs: images of particles that move, and how they are written."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from outbid import Detections, Tracks

Record = dict[str, Any]


def truth_of(frames: int, particles: int = 40, side: int = 96, *, step: float = 0.8, seed: int = 0) -> Tracks:
    """Particles that diffuse in a plane between walls, in pixels; one in fifty is missed in each frame."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, step, (frames, particles, 2))
    path = rng.uniform(4, side - 4, (particles, 2)) + np.cumsum(steps, axis=0)
    path = side - 4 - np.abs((path - 4) % (2 * (side - 8)) - (side - 8))
    frame, who = np.nonzero(rng.random((frames, particles)) > 0.02)
    position = np.column_stack([np.zeros(len(frame)), path[frame, who]])
    return Tracks.from_track_ids(Detections.from_table(frame, position), who)


def images_of(truth: Tracks, frames: int, shape: tuple[int, ...], seed: int = 0) -> NDArray[np.uint16]:
    """(T, Z, Y, X) images of spots with a standard deviation of 1.3 voxels, with photon noise."""
    rng, seen = np.random.default_rng(seed), truth.detections
    axes = np.ogrid[tuple(slice(length) for length in shape)]
    out = np.full((frames, *shape), 100.0)
    for frame in range(frames):
        for place in seen.position[seen.rows_of(frame)]:
            near = tuple(slice(max(int(at) - 5, 0), int(at) + 7) for at in place)
            square = sum(
                (axis[tuple(n if axis.shape[k] > 1 else slice(None) for k, n in enumerate(near))] - at) ** 2
                for axis, at in zip(axes, place, strict=True)
            )
            out[(frame, *near)] += 150 * np.exp(-square / (2 * 1.3**2))
    return rng.poisson(out).astype(np.uint16)


def write_frame(folder: Path, number: int, image: NDArray, *, name: str = "img_{:04d}.tif") -> Path:
    """Write one frame of a folder at once: under another name, then renamed."""
    path = folder / name.format(number)
    tifffile.imwrite(folder / ".writing", image[0] if len(image) == 1 else image)
    return (folder / ".writing").replace(path)


def recorded(write: Callable[[], None], run: Callable[[], Record]) -> Record:
    """What a run returns beside which a thread writes."""
    writing = threading.Thread(target=write)
    writing.start()
    try:
        return run()
    finally:
        writing.join()


def files_in(folder: Path) -> dict[str, bytes]:
    """Contents of the files of a folder by name."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
