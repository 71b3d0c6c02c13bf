"""Detection, and the whole pipeline from images to scored tracks: accuracy, speed and memory.

`stack`: one frame of 29 x 512 x 512 voxels with 800 spots, and a movie of 12 such frames, detected on two
threads (or on the GPU with --device gpu), with given and with estimated radius. `peak_gb` is the peak memory
of the process.

`rendered`: persistent walks in 512 x 512 x 10 voxels at SNR 4 (standard deviation of a spot: 1.5 pixels in
the plane, 1 plane along z); rendering is not timed. For `jsc` and `rmse_xy` detections are matched one to one
with particles nearer than 5 voxels; `rmse_xy` is in pixels in the plane. `track` then runs with default
settings and is scored as in the ISBI 2012 challenge, at a gate of 5 voxels.

`drosophila`: 16 stacks of real nuclei, with only the voxel size given. `recall` is the share of the reference
points with a detection within 5 pixels in the plane, `extra` the number of detections over that of reference
points, minus 1. The stacks are in the folder given by the environment variable OUTBID_DATA, by default in
../shared/data beside the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid import (
    Detections,
    DetectionSettings,
    TrackingSettings,
    detect,
    match,
    read_detections,
    score,
    track,
)
from outbid.formats.images import open_movie
from outbid.simulate.camera import Camera, render
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk

DATA = Path(os.environ.get("OUTBID_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
GIVEN = {"given": (2.5, 1.7), "estimated": (None, None)}


def stack(device: str, radius: str, frames: int) -> measure.Row:
    """Seconds for a frame, and for a movie."""
    place = np.random.default_rng(0).uniform(0, 1, (800, 3)) * [28, 511, 511]
    truth = Detections.from_table(np.zeros(800, dtype=int), place)
    camera = Camera(shape=(29, 512, 512), psf=(1.5, 2.0, 2.0))
    image: NDArray[np.uint16] = next(render(truth, camera, seed=1))
    settings = DetectionSettings(*GIVEN[radius], device=device)
    detect([image], settings)  # compiles the filters of a GPU
    seconds, (found, used) = measure.best_of(
        3, lambda: detect((image + np.uint16(k) for k in range(frames)), settings)
    )
    return {
        "seconds": seconds, "seconds_a_frame": seconds / frames, "detections": len(found),
        "radius_used": used.radius, "device": used.device,
    }  # fmt: skip


def rendered(particles: int, frames: int, radius: str) -> measure.Row:
    truth = walk(
        WalkSettings(PersistentWalk(2.0, 0.8), particles, frames, (9.0, 511.0, 511.0), "reflect", seed=1)
    )
    movie = list(render(truth.detections, Camera(), seed=1))
    seconds, (seen, used) = measure.best_of(1, lambda: detect(movie, DetectionSettings(*GIVEN[radius])))
    found = how_near(seen, truth.detections)
    track(seen.take(seen.frame < 3), TrackingSettings())  # compiles
    tracking, run = measure.best_of(1, lambda: track(seen, TrackingSettings()))
    scores = score(run.tracks, truth, gate=5.0, families=("particles", "links")).values
    shown = ("alpha", "beta", "jsc", "jsc_theta", "rmse", "link_f1")
    return {
        "seconds": seconds, "radius_used": used.radius, **found, "track_seconds": tracking,
        **{f"tracks_{name}": scores[name] for name in shown},
    }  # fmt: skip


def how_near(seen: Detections, truth: Detections) -> measure.Row:
    """Detections within 5 voxels of a particle, matched one to one."""
    pairs = match(seen.position, truth.position, 5.0, source_block=seen.frame, target_block=truth.frame)
    error = (seen.position[pairs.source] - truth.position[pairs.target])[:, 1:]
    hits = len(error)
    return {
        "jsc": hits / (len(seen) + len(truth) - hits), "missed": len(truth) - hits, "extra": len(seen) - hits,
        "rmse_xy": float(np.sqrt((error**2).sum(axis=1).mean())),
    }  # fmt: skip


def drosophila() -> measure.Row:
    movie = open_movie(DATA / "drosophila_nuclei" / "tif", spacing=(5, 1, 1))
    truth = read_detections(DATA / "drosophila_nuclei" / "tracks.csv")
    truth = truth.take(truth.frame < movie.frame_count)
    images = list(movie.frames())
    seconds, (seen, used) = measure.best_of(
        2, lambda: detect(images, DetectionSettings(spacing=movie.spacing))
    )
    near = 0
    for frame in range(movie.frame_count):
        plane = seen.position[seen.rows_of(frame), 1:]
        near += int((cKDTree(plane).query(truth.position[truth.rows_of(frame), 1:])[0] <= 5).sum())
    return {
        "seconds": seconds, "radius_used": used.radius, "recall": near / len(truth),
        "extra": len(seen) / len(truth) - 1,
    }  # fmt: skip


def table(limit: float, device: str, frames: int, parts: list[str]) -> Iterator[measure.Row]:
    if "stack" in parts:
        for radius, count in (("given", 1), ("estimated", 1), ("given", 12)):
            row = measure.in_process(stack, device, radius, count, limit=limit)
            yield {"case": "stack", "frames": count, "radius": radius} | row
    if "rendered" in parts:
        for particles in (100, 500):
            for radius in GIVEN:
                row = measure.in_process(rendered, particles, frames, radius, limit=limit)
                yield {"case": f"rendered {particles}", "frames": frames, "radius": radius} | row
    if "drosophila" in parts and (DATA / "drosophila_nuclei").is_dir():
        row = measure.in_process(drosophila, limit=limit)
        yield {"case": "drosophila", "frames": 16, "radius": "estimated"} | row


if __name__ == "__main__":
    parser = measure.options(__doc__)
    parts = ["stack", "rendered", "drosophila"]
    parser.add_argument("--device", default="cpu", choices=["cpu", "gpu"], help="of the stack")
    parser.add_argument("--frames", type=int, default=100, help="of the rendered movies")
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    chosen = parser.parse_args()
    measure.show(table(chosen.limit, chosen.device, chosen.frames, chosen.parts), chosen.csv)
