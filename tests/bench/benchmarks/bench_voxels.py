"""Raw voxels, rendered as they are asked for and never on a disk, detected and tracked on two cores.

`--gigabytes` of images, in voxels of two bytes, are detected in ranges of frames (`outbid detect` with a
cluster does the same) by processes of two threads, and tracked with a gate. `--lanes` ranges are done at the
same time, each by a process that is bound to two cores of its own; seconds are those of all ranges added up,
as if one lane had done them, without rendering, and memory is the peak of the process that gives out the work
and that of one lane, added up. The model is learned first, and that time counts. `--record` adds the
measurement to tests/bench/scale_record.json, from which docs/scale_tables.py makes its tables.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import measure
import numpy as np
from bench_scale import RECORD, peak

from outbid import DetectionSettings, Images, TrackingSettings, open_images, read_detections, track
from outbid.work.chunks.movie import How, detect_in_chunks
from outbid.work.chunks.tasks import Task
from outbid.work.jobs import DetectJob, Opening

THREADS = 2
SHAPE = (64, 512, 512)
GATE = 6.0


class Rendered:
    """A movie of bright spots that move and come back, each frame made when it is asked for."""

    dtype = np.dtype(np.uint16)

    def __init__(self, frames: int, shape: tuple[int, int, int]) -> None:
        rng = np.random.default_rng(1)
        self.shape = (frames, *shape)
        self._base = rng.normal(100, 5, shape).astype(np.float32)
        self._centres = rng.uniform(12, np.array(shape) - 12, (200, 3))
        self._grid = np.stack(np.meshgrid(*[np.arange(-6, 7)] * 3, indexing="ij"), axis=-1)
        self.seconds = 0.0

    def __getitem__(self, index: tuple[int, ...]) -> np.ndarray:
        begin = time.perf_counter()
        frame, *rest = index
        image = np.roll(self._base, 17 * frame, axis=2)
        for centre in self._centres + np.array([0, 0, 4 * np.sin(frame)]):
            at = np.rint(centre).astype(int)
            spot = 80 * np.exp(-(((self._grid + at - centre) ** 2).sum(axis=-1)) / 8)
            image[tuple(slice(a - 6, a + 7) for a in at)] += spot.astype(np.float32)
        made = image.astype(np.uint16)[tuple(rest)]
        self.seconds += time.perf_counter() - begin
        return made


MOVIES: dict[str, Rendered] = {}
"""The movies that this process renders, by their descriptions."""


@dataclass(frozen=True)
class Rendering(Opening):
    """Opens a movie that is rendered, from a file with its number of frames and their shape."""

    def open(self, source: str) -> Images:
        text = Path(source).read_text()
        if text not in MOVIES:
            said = json.loads(text)
            MOVIES[text] = Rendered(said["frames"], tuple(said["shape"]))
        return open_images(MOVIES[text], axes="TZYX", spacing=(1.0, 1.0, 1.0))


def rendered() -> float:
    """Seconds of rendering in this process so far."""
    return sum(movie.seconds for movie in MOVIES.values())


@dataclass(frozen=True)
class Measured:
    """A task that also returns the seconds of rendering, and the peak of its process."""

    task: Task

    def __call__(self) -> dict[str, Any]:
        before = rendered()
        account = self.task()
        return account | {"render_seconds": rendered() - before, "peak_bytes": peak()}


class Lanes:
    """Runs tasks in processes of two threads, each on two cores of its own."""

    def __init__(self, count: int) -> None:
        self.count, self.begun = count, math.inf

    def __call__(self, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        self.begun, context = time.monotonic(), get_context("spawn")
        cores, own = sorted(os.sched_getaffinity(0)), context.Queue()
        for lane in range(self.count):
            own.put([cores[(THREADS * lane + k) % len(cores)] for k in range(THREADS)])
        with ProcessPoolExecutor(self.count, mp_context=context, initializer=bind, initargs=(own,)) as pool:
            for done in as_completed([pool.submit(Measured(task)) for task in tasks]):
                yield done.result()


def bind(own: Any) -> None:
    """Bind this process to the next pair of cores."""
    os.sched_setaffinity(0, own.get())


def measured(folder: Path, frames: int, lanes: Lanes) -> measure.Row:
    """Detect, track, and add up."""
    begin = time.monotonic()
    source, output = folder / "movie.json", folder / "spots.parquet"
    source.write_text(json.dumps({"frames": frames, "shape": SHAPE}))
    job = DetectJob(DetectionSettings(radius=3.5), opening=Rendering(), workers=THREADS)
    detect_in_chunks(str(source), output, job, How(lanes))
    detected, learned = time.monotonic(), lanes.begun - begin - rendered()
    run = track(read_detections(output), TrackingSettings(max_distance=GATE, device="cpu"), workers=THREADS)
    tracked = time.monotonic() - detected
    tasks = json.loads((folder / f"{output.name}.tasks.json").read_text())["tasks"]
    tasks = sorted(tasks, key=lambda task: task["file"])
    peaks = [task["peak_bytes"] for task in tasks]
    render = sum(task["render_seconds"] for task in tasks)
    busy = sum(task["ended"] - task["begun"] for task in tasks) - render
    voxels = frames * math.prod(SHAPE)
    return {
        "voxels": voxels, "bytes": 2 * voxels, "threads": THREADS, "lanes": lanes.count,
        "ranges": len(tasks), "render_seconds": render, "detect_seconds": busy + learned,
        "track_seconds": tracked, "wall_seconds": detected - begin, "spots": len(run.tracks.detections),
        "links": len(run.tracks.links), "peak_bytes": peak() + max(peaks),
        "peak_bytes_at_an_eighth": peak() + max(peaks[: max(len(peaks) // 8, 1)]),
    }  # fmt: skip


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.2)
    parser.add_argument("--lanes", type=int, default=max(len(os.sched_getaffinity(0)) // THREADS, 1))
    parser.add_argument("--record", type=Path, nargs="?", const=RECORD)
    given = parser.parse_args()
    frames = max(round(given.gigabytes * 1e9 / (2 * math.prod(SHAPE))), 6)
    with tempfile.TemporaryDirectory() as made:
        found = measured(Path(made), frames, Lanes(given.lanes))
    measure.show([found])
    if given.record:
        kept = json.loads(given.record.read_text()) if given.record.exists() else {}
        images = found | measure.stated()
        given.record.write_text(json.dumps(kept | {"images": images}, indent=1) + "\n")


if __name__ == "__main__":
    main()
