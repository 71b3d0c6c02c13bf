"""Raw voxels, rendered as they are asked for and never on a disk, detected and tracked on two cores.

`--gigabytes` of images, in voxels of two bytes, are detected in ranges of frames (`outbid detect` with a
cluster does the same) by processes of two threads, and tracked with a gate. That takes hours on two cores, so
it is done in sessions: one ends after `--minutes`, or when all is done, and the same command with the same
`--folder` goes on. `--lanes` ranges are done at the same time, each by a process that is bound to two cores
of its own; seconds are those of all ranges added up, as if one lane had done them, without rendering, and
memory is the peak of the process that gives out the work and that of one lane, added up. The model is
learned again in every session, and that time counts. `--record` adds the finished measurement to
tests/scale_record.json, from which docs/scale_tables.py makes its tables.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import measure
import numpy as np
from bench_scale import RECORD, peak

from outbid import DetectionSettings, Images, TrackingSettings, open_images, read_detections, track
from outbid.movies.jobs import DetectJob, Opening
from outbid.ranges.movie import How, detect_in_ranges
from outbid.ranges.tasks import Task

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


class TimeOver(Exception):
    """The session is over, and ranges are left."""


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

    @property
    def output(self) -> Path:
        return self.task.output

    def __call__(self) -> dict[str, Any]:
        before = rendered()
        account = self.task()
        return account | {"render_seconds": rendered() - before, "peak_bytes": peak()}


class Lanes:
    """Runs tasks in processes of two threads, each on two cores of its own, until the session is over."""

    def __init__(self, count: int, end: float) -> None:
        self.count, self.end, self.begun = count, end, math.inf

    def __call__(self, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        self.begun, longest = time.monotonic(), 0.0
        context, left = get_context("spawn"), deque(map(Measured, tasks))
        cores, own = sorted(os.sched_getaffinity(0)), context.Queue()
        for lane in range(self.count):
            own.put([cores[(THREADS * lane + k) % len(cores)] for k in range(THREADS)])
        with ProcessPoolExecutor(self.count, mp_context=context, initializer=bind, initargs=(own,)) as pool:
            running: set[Future[dict[str, Any]]] = set()
            while running or (left and time.monotonic() + longest < self.end):
                while left and len(running) < self.count and time.monotonic() + longest < self.end:
                    running.add(pool.submit(left.popleft()))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for account in [future.result() for future in done]:
                    longest = max(longest, account["ended"] - account["begun"])
                    yield account
        if left:
            raise TimeOver(f"{len(left)} of {len(tasks)} ranges are left")


def bind(own: Any) -> None:
    """Bind this process to the next pair of cores."""
    os.sched_setaffinity(0, own.get())


def session(folder: Path, frames: int, shape: tuple[int, ...], lanes: Lanes) -> dict[str, Any] | None:
    """Detect what is left, until the session is over; when all is detected, track it and return the row."""
    begin = time.monotonic()
    source, output = folder / "movie.json", folder / "spots.parquet"
    source.write_text(json.dumps({"frames": frames, "shape": shape}))
    job = DetectJob(DetectionSettings(radius=3.5), opening=Rendering(), workers=THREADS)
    how = How(lanes, overwrite=True, resume=output.with_name(f"{output.name}.parts").exists())
    before, left = rendered(), ""
    try:
        detect_in_ranges(str(source), output, job, how)
    except TimeOver as error:
        left = str(error)
    note = {
        "learn_seconds": lanes.begun - begin - (rendered() - before), "lanes": lanes.count,
        "wall_seconds": time.monotonic() - begin, "own_peak_bytes": peak(), "left": left,
    }  # fmt: skip
    notes = folder / "sessions.json"
    every = [*(json.loads(notes.read_text()) if notes.exists() else []), note]
    notes.write_text(json.dumps(every, indent=1))
    print(json.dumps(note), flush=True)
    return None if left else row_of(folder, output, frames * math.prod(shape), every)


def row_of(folder: Path, output: Path, voxels: int, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """Track what was detected, and add up all sessions."""
    tasks = json.loads((folder / f"{output.name}.tasks.json").read_text())["tasks"]
    tasks = sorted(tasks, key=lambda task: task["file"])
    peaks = [task["peak_bytes"] for task in tasks]
    begin = time.monotonic()
    run = track(read_detections(output), TrackingSettings(max_distance=GATE, device="cpu"), workers=THREADS)
    tracked = time.monotonic() - begin
    giver = max(*(each["own_peak_bytes"] for each in sessions), peak())
    render = sum(task["render_seconds"] for task in tasks)
    busy = sum(task["ended"] - task["begun"] for task in tasks) - render
    return {
        "voxels": voxels, "bytes": 2 * voxels, "threads": THREADS, "lanes": max(s["lanes"] for s in sessions),
        "sessions": len(sessions), "ranges": len(tasks), "render_seconds": render,
        "detect_seconds": busy + sum(each["learn_seconds"] for each in sessions), "track_seconds": tracked,
        "wall_seconds": sum(each["wall_seconds"] for each in sessions), "spots": len(run.tracks.detections),
        "links": len(run.tracks.links), "peak_bytes": giver + max(peaks),
        "peak_bytes_at_an_eighth": giver + max(peaks[: max(len(peaks) // 8, 1)]),
    }  # fmt: skip


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.2)
    parser.add_argument("--lanes", type=int, default=max(len(os.sched_getaffinity(0)) // THREADS, 1))
    parser.add_argument("--minutes", type=float, default=9.0, help="of a session, about")
    parser.add_argument("--folder", type=Path, help="of the ranges that are done; default: one session")
    parser.add_argument("--record", type=Path, nargs="?", const=RECORD)
    given = parser.parse_args()
    frames = max(round(given.gigabytes * 1e9 / (2 * math.prod(SHAPE))), 6)
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        found = session(folder, frames, SHAPE, Lanes(given.lanes, time.monotonic() + 60 * given.minutes))
    if found is None:
        return
    measure.show([found])
    if given.record:
        kept = json.loads(given.record.read_text()) if given.record.exists() else {}
        images = found | measure.stated()
        given.record.write_text(json.dumps(kept | {"images": images}, indent=1) + "\n")


if __name__ == "__main__":
    main()
