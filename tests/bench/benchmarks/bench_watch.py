"""`outbid watch`: latency of a frame, a long recording with faults, links live beside links afterwards.

`python bench_watch.py latency --movie plane` records in real time, the camera a process beside the one that
watches, both on the cores of `--cores`; `cpu` counts CPU seconds of a frame by stage; `long --frames 7200`
records an hour at 2 Hz as fast as it goes, with files that are half written, out of order, or missing, and a
process that is killed; `links` compares with the truth of shared recordings, links by the past alone and by
the whole movie. `--record` adds the rows to tests/bench/watch_record.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import measure
import numpy as np
import tifffile
from bench_detect import frame_of
from numpy.typing import NDArray

from outbid import DetectionSettings, TrackingSettings, Tracks, open_images, read_tracks, score, track
from outbid.particles.detections import Detections
from outbid.watching.account import How
from outbid.watching.ending import LAST
from outbid.watching.following import Follower
from outbid.watching.seeing import Seer, numbered
from outbid.watching.watch import watch

RECORD = Path(__file__).resolve().parents[1] / "watch_record.json"
MOVIES = {"plane": ("512²", (1, 512, 512), 300, 5.0), "volume": ("20 x 256²", (20, 256, 256), 300, 2.0)}
"""Name, shape, spots drawn, and frames a second."""
MARGIN = 32
"""Pixels that the window may move to each side."""
LEARN, FRAMES = 20, 45
"""Frames from which motion is learned, and frames of which CPU time is counted."""
KILLED, HALF, SWAPPED, MISSING = 3, 0.05, 0.05, 0.01
"""Kills of a long recording, and shares of its frames with other faults."""
SHARED = (
    "celegans/L1.csv", "celegans/L2.csv", "celegans/L5.csv", "turbulence/subcube.csv", "ascidian/Pm05.csv",
    "ascidian/Pm07.csv", "ascidian/Pm08.csv", "drosophila_nuclei/tracks.csv",
)  # fmt: skip
ARGUMENTS = ["-c", "from outbid.cli import main; main()", "watch"]


def movie(shape: tuple[int, int, int], spots: int, frames: int) -> list[NDArray[np.uint16]]:
    """Frames of spots that diffuse together: a window that moves over a larger image."""
    wide = (shape[0], shape[1] + 2 * MARGIN, shape[2] + 2 * MARGIN)
    large = frame_of(wide, round(spots * wide[1] * wide[2] / (shape[1] * shape[2])), 0)
    rng = np.random.default_rng(0)
    path = MARGIN + np.cumsum(rng.integers(-1, 2, (frames, 2)), axis=0)
    path = 2 * MARGIN - np.abs(path % (4 * MARGIN) - 2 * MARGIN)
    return [large[:, y : y + shape[1], x : x + shape[2]] for y, x in path.tolist()]


def write(folder: Path, number: int, image: NDArray) -> None:
    """A file that gets its name when it is whole."""
    tifffile.imwrite(folder / ".writing", image[0] if len(image) == 1 else image)
    (folder / ".writing").replace(folder / f"img_{number:05d}.tif")


def camera(name: str, frames: int, rate: float, folder: Path) -> None:
    """Record in real time; print when each file got its name, in seconds of the clock of the machine."""
    _, shape, spots, _ = MOVIES[name]
    images, written = movie(shape, spots, frames), []
    begin = time.monotonic()
    for k, image in enumerate(images):
        time.sleep(max(begin + k / rate - time.monotonic(), 0))
        write(folder, k, image)
        written.append(time.time())
    print(json.dumps(written))


@dataclass
class Done:
    """When each frame was linked and its events were given: what `watch` calls as it goes on."""

    at: list[float] = field(default_factory=list)

    def __call__(self, done: int, _known: int, text: str = "") -> None:
        if not text.startswith(LAST):
            self.at += [time.time()] * (done - len(self.at))


def latency(name: str, seconds: float, device: str, rate: float | None = None) -> measure.Row:
    """Seconds from when a file has its name to when its frame is linked, of frames recorded in real time.

    The frames are those after the first one that found nothing waiting, once the model was learned.
    """
    label, shape, spots, usual = MOVIES[name]
    rate = rate or usual
    frames, settings = round(seconds * rate), DetectionSettings(device=device)
    with tempfile.TemporaryDirectory() as scratch:
        warm, folder = Path(scratch, "warm"), Path(scratch, "images")
        for place in (warm, folder):
            place.mkdir()
        for k, image in enumerate(movie(shape, spots, LEARN + 5)):  # kernels are compiled
            write(warm, k, image)
        how = How(until=LEARN + 4, poll=0.02, learn=LEARN)
        watch(warm, Path(scratch, "warm.parquet"), settings, how=how)
        words = [name, "--frames", str(frames), "--rate", str(rate), "--folder", str(folder)]
        recording = subprocess.Popen(
            [sys.executable, __file__, "camera", "--movie", *words], stdout=subprocess.PIPE
        )
        done, before = Done(), time.process_time()
        made = watch(
            folder, Path(scratch, "tracks.parquet"), settings, progress=done,
            how=How(until=frames - 1, poll=0.02, learn=LEARN, keep=True),
        )  # fmt: skip
        used = time.process_time() - before
        written = np.array(json.loads(recording.communicate()[0]))
        seen = read_tracks(Path(scratch, "tracks.live.parquet")).detections
    live, at = made["live"], np.array(done.at)
    waits = np.append(True, at[:-1] > written[1:])  # the one before was not yet done
    first = next((k for k in range(LEARN, frames) if not waits[k]), frames - 1)
    took = (at - written)[first:]
    return {
        "what": "latency", "movie": label, "spots": len(seen) // frames, "hz": rate, "device": device,
        "cores": len(os.sched_getaffinity(0)), "frames": frames, "learned_after": first,
        "median": round(float(np.median(took)), 3), "p99": round(float(np.percentile(took, 99)), 3),
        "most": round(float(took.max()), 3), "lost": live["missing"] + live["late"],
        "linked": len(np.unique(seen.frame)), "most_behind": live["most_behind"],
        "cpu_and_last_pass": round(used, 1),
    }  # fmt: skip


def cpu(name: str) -> measure.Row:
    """CPU seconds of a frame, which other work on the machine does not change: to detect, and to link."""
    label, shape, spots, _ = MOVIES[name]
    images = movie(shape, spots, FRAMES)
    seer = Seer(open_images(images[0], axes="ZYX"), DetectionSettings(), 1)
    seer.learn(images.__getitem__, range(8))
    follower, seconds, found = Follower(TrackingSettings(), LEARN, 1), list[tuple[float, float]](), 0
    for k, image in enumerate(images):
        begin = time.process_time()
        seen = numbered(seer.found(image), k)
        middle = time.process_time()
        follower.add(k, seen)
        seconds += [(middle - begin, time.process_time() - middle)]
        found += len(seen)
    after = np.array(seconds[LEARN:])
    detect, link = np.median(after, axis=0).round(4).tolist()
    whole = np.percentile(after.sum(axis=1), [50, 99]).round(4).tolist()
    return {
        "what": "cpu", "movie": label, "spots": found // FRAMES, "detect": detect, "link": link,
        "median": whole[0], "p99": whole[1],
    }  # fmt: skip


def long(frames: int, rate: float | None) -> measure.Row:
    """A recording with faults, as fast as it goes or in time; the run is killed, and begun again."""
    rng, seeds = random.Random(0), np.random.default_rng(0)
    particles, side = 20, 64
    path = seeds.uniform(8, 56, (particles, 2)) + np.cumsum(
        seeds.normal(0, 0.5, (frames, particles, 2)), axis=0
    )
    path = side - 4 - np.abs((path - 4) % (2 * (side - 8)) - (side - 8))
    axis = np.arange(side)
    order = list(range(frames))
    for k in range(30, frames - 1):
        if rng.random() < SWAPPED:
            order[k], order[k + 1] = order[k + 1], order[k]
    missing = {k for k in range(30, frames - 1) if rng.random() < MISSING}
    with tempfile.TemporaryDirectory() as scratch:
        folder, output = Path(scratch, "images"), Path(scratch, "tracks.parquet")
        folder.mkdir()

        def record() -> None:
            start = time.monotonic()
            for place, k in enumerate(order):
                gauss = np.exp(-((axis - path[k][..., None]) ** 2) / (2 * 1.3**2))
                light = 100 + 150 * np.einsum("py,px->yx", gauss[:, 0], gauss[:, 1])
                image = seeds.poisson(light).astype(np.uint16)[None]
                if rate:
                    time.sleep(max(start + place / rate - time.monotonic(), 0))
                if k in missing:
                    continue
                write(folder, k, image)
                final = folder / f"img_{k:05d}.tif"
                if k >= 30 and rng.random() < HALF:
                    whole = final.read_bytes()
                    half = final.with_suffix(".tmp")
                    half.write_bytes(whole)
                    final.write_bytes(whole[: len(whole) // 2])
                    time.sleep(0.05)
                    half.replace(final)

        recording = threading.Thread(target=record)
        options = [
            "--until",
            str(frames - 1),
            "--poll",
            "0.02",
            "--wait",
            "2",
            "--keep",
            "--learn",
            str(LEARN),
        ]
        command = [sys.executable, *ARGUMENTS, str(folder), "-o", str(output), *options]
        begin = time.monotonic()
        recording.start()
        memory, kills = Memory(output.with_name("tracks.live.parquet") / "ended"), 0
        while True:
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            end = time.monotonic() + (rng.uniform(20, 60) if kills < KILLED else 1e9)
            while process.poll() is None and time.monotonic() < end:
                memory.look(process.pid)
                time.sleep(0.5)
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            kills += 1
        recording.join()
        seconds = time.monotonic() - begin
        record_of = json.loads(output.with_name("tracks.watch.json").read_text("utf-8"))
        seen = read_tracks(output.with_name("tracks.live.parquet")).detections
    return {
        "what": "long", "frames": frames, "missing": len(missing),
        "counted_as_missing": record_of["live"]["missing"], "late": record_of["live"]["late"],
        "frames_live": len(np.unique(seen.frame)), "kills": kills, **memory.stated(),
        "seconds": round(seconds), **record_of["links_changed"],
    }  # fmt: skip


@dataclass
class Memory:
    """MB of a process of its own (no files mapped), while frames come, and in the last pass."""

    ended: Path  # there once the last pass has begun
    coming: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)

    def look(self, process: int) -> None:
        """Add how much a process has now."""
        try:
            text = Path(f"/proc/{process}/status").read_text("utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return
        known = dict(line.split(":", 1) for line in text.splitlines())
        kilobytes = int(known.get("RssAnon", "0").split()[0])
        (self.after if self.ended.exists() else self.coming).append(kilobytes // 1024)

    def stated(self) -> measure.Row:
        """The median of each quarter of the time in which frames came, and the most of the last pass."""
        quarters = np.array_split(np.array(self.coming), 4)
        return {
            "mb_by_quarter": [int(np.median(part)) for part in quarters],
            "most_mb_by_quarter": [int(part.max()) for part in quarters],
            "most_mb_of_last_pass": max(self.after, default=0),
        }  # fmt: skip


def links(name: str, folder: Path, learn: int) -> measure.Row:
    """F1 and calibration, live and afterwards."""
    truth = read_tracks(folder / name)
    seen = Detections(truth.detections.frame, truth.detections.position, truth.detections.calibration)
    truth = Tracks(seen, truth.links)
    follower, found = Follower(TrackingSettings(), learn, 2), list[Any]()
    for frame in range(seen.first_frame, seen.first_frame + seen.frame_count):
        found += follower.add(frame, seen.take(seen.rows_of(frame)))
    found += follower.rest(ended=True)
    ids, parents, probability = (
        np.concatenate([getattr(one, what) for one in found]) for what in ("track", "parent", "probability")
    )
    live, whole = Tracks.from_track_ids(seen, ids, parents), track(seen).tracks
    row: measure.Row = {
        "what": "links", "recording": name, "frames": seen.frame_count, "detections": len(seen)
    }  # fmt: skip
    for label, made, stated in (
        ("live", live, probability[live.links[:, 1]]), ("afterwards", whole, whole.link_probability),
    ):  # fmt: skip
        true = {tuple(pair) for pair in truth.links.tolist()}
        right = np.mean([tuple(pair) in true for pair in made.links.tolist()])
        row |= {
            f"F1 {label}": round(score(made, truth, families=["links"]).values["link_f1"], 4),
            f"probability - share {label}": round(float(np.nanmean(stated) - right), 4),
        }
    return row


CASE = ("what", "movie", "hz", "device", "recording")
"""The values by which rows of a record are cases."""


def record(path: Path, rows: list[measure.Row], stated: dict[str, str]) -> None:
    """Add rows to a record, with where each was measured; of each case the last is kept."""
    before = json.loads(path.read_text("utf-8"))["rows"] if path.is_file() else []
    cases = {
        json.dumps([row.get(name) for name in CASE]): row
        for row in [*before, *(row | stated for row in rows)]
    }
    measure.write_rows(path, stated, cases.values())


def collect(files: list[Path]) -> None:
    """Join records that were written on another machine to the one of the documentation."""
    for file in files:
        made = json.loads(file.read_text("utf-8"))
        record(RECORD, made["rows"], {name: made[name] for name in measure.ORIGIN})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("latency", "cpu", "long", "links", "camera", "collect"))
    parser.add_argument("files", type=Path, nargs="*", help="records to collect")
    parser.add_argument("--movie", choices=[*MOVIES], help="one alone")
    parser.add_argument("--rate", type=float, help="frames a second; default: that of the movie")
    parser.add_argument("--seconds", type=float, default=75.0, help="of a recording in real time")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cores", type=int, nargs="+", help="those that this and all it starts run on")
    parser.add_argument("--frames", type=int, default=7200)
    parser.add_argument("--data", type=Path, help="folder of the shared recordings")
    parser.add_argument("--learn", type=int, default=LEARN)
    parser.add_argument("--folder", type=Path, help="where the camera writes")
    parser.add_argument("--record", type=Path, nargs="?", const=RECORD)
    given = parser.parse_args()
    if given.cores:
        os.sched_setaffinity(0, given.cores)
    names = [given.movie] if given.movie else [*MOVIES]
    if given.what == "camera":
        camera(names[0], given.frames, given.rate, given.folder)
        return
    if given.what == "collect":
        collect(given.files)
        return
    if given.what == "latency":
        cases = (latency(name, given.seconds, given.device, given.rate) for name in names)
    elif given.what == "cpu":
        cases = map(cpu, names)
    elif given.what == "long":
        cases = (long(given.frames, given.rate) for _ in range(1))
    else:
        cases = (links(name, given.data, given.learn) for name in SHARED if (given.data / name).exists())
    for row in cases:
        print(json.dumps(row), flush=True)
        if given.record:
            record(given.record, [row], measure.stated())
    print(json.dumps(measure.stated()))


if __name__ == "__main__":
    main()
