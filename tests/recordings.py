"""Movies that are recorded while a test runs: images of particles that move, and how they are written."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from outbid import Detections, Tracks
from outbid.watching.following import Followed
from outbid.watching.parts import GrowingOutput

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


class WrittenMovie:
    """Images, and what a watch would write of them, frame by frame, as fast as it is asked for.

    Parameters
    ----------
    folder : Path
    images : sequence of (Y, X) array
        Which are repeated, as links to the same files.
    spots : int
        Of a frame; tracks of 60 frames.
    """

    LENGTH, OF_A_PART = 60, 10

    def __init__(self, folder: Path, images: Sequence[NDArray], spots: int) -> None:
        self.images, self.output, self.frame = folder / "images", folder / "tracks.parquet", 0
        self.images.mkdir()
        (folder / "kept").mkdir()
        self._kept = [folder / "kept" / f"{k}.tif" for k in range(len(images))]
        for path, image in zip(self._kept, images, strict=True):
            tifffile.imwrite(path, image)
        self._rng, self._spots, self._side = np.random.default_rng(0), spots, len(images[0])
        self._place = self._rng.uniform(0, self._side, (spots, 2))
        self.out = GrowingOutput(self.output, {"command": "watch"}, overwrite=False)

    def next(self) -> None:
        """One more frame."""
        k, who = self.frame, np.arange(self._spots)
        os.link(self._kept[k % len(self._kept)], self.images / f"img_{k:06d}.tif")
        self._place = np.clip(self._place + self._rng.normal(0, 1, self._place.shape), 0, self._side)
        seen = Detections.from_table(np.full(len(who), k), np.column_stack([0 * who, self._place]))
        track, sure = who + len(who) * ((k + who) // self.LENGTH), self._rng.beta(20, 1, len(who))
        self.out.took(k, k, 0)
        self.out.add([Followed(k, seen, track, sure, np.full(len(who), -1))])
        if k % self.OF_A_PART == 0:
            self.out.commit({"seen": np.empty(0, np.int64)})
        self.frame += 1
