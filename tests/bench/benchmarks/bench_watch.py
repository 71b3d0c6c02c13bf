"""`outbid watch`: latency of a frame, a long recording with faults, links live beside links afterwards.

`python bench_watch.py latency` records in real time; `cpu` counts CPU seconds of a frame; `long --frames
7200` records an hour at 2 Hz as fast as it goes, with files that are half written, out of order, or missing,
and a process that is killed; `links` compares with the truth of shared recordings, links by the past alone
and by the whole movie.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
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
from outbid.watching.following import Follower
from outbid.watching.seeing import Seer
from outbid.watching.watch import watch

MOVIES = {"512²": ((1, 512, 512), 300), "20 x 256²": ((20, 256, 256), 300)}
RATES, FRAMES = (5.0, 2.0), 60
KILLED, HALF, SWAPPED, MISSING = 3, 0.05, 0.05, 0.01
"""Kills of a long recording, and shares of its frames with other faults."""
SHARED = (
    "celegans/L1.csv", "celegans/L2.csv", "celegans/L5.csv", "turbulence/subcube.csv", "ascidian/Pm05.csv",
    "ascidian/Pm07.csv", "ascidian/Pm08.csv", "drosophila_nuclei/tracks.csv",
)  # fmt: skip
ARGUMENTS = ["-c", "from outbid.cli import main; main()", "watch"]


def movie(shape: tuple[int, int, int], spots: int, frames: int) -> list[NDArray[np.uint16]]:
    """Frames of spots that diffuse: a few that are drawn, shifted by some pixels."""
    first = frame_of(shape, spots, 0)
    rng = np.random.default_rng(0)
    path = np.cumsum(rng.integers(-1, 2, (frames, 2)), axis=0)
    return [np.roll(first, tuple(shift), (1, 2)) for shift in path.tolist()]


def write(folder: Path, number: int, image: NDArray) -> None:
    """A file that gets its name when it is whole."""
    tifffile.imwrite(folder / ".writing", image[0] if len(image) == 1 else image)
    (folder / ".writing").replace(folder / f"img_{number:05d}.tif")


def latency(name: str, rate: float) -> measure.Row:
    """Seconds from file to tracks, of frames recorded in real time on two threads."""
    images = movie(*MOVIES[name], FRAMES)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "images")
        folder.mkdir()

        def record() -> None:
            begin = time.monotonic()
            for k, image in enumerate(images):
                time.sleep(max(begin + k / rate - time.monotonic(), 0))
                write(folder, k, image)

        camera, before = threading.Thread(target=record), time.process_time()
        camera.start()
        how = How(until=FRAMES - 1, poll=0.02, learn=20, keep=True)
        made = watch(folder, Path(scratch, "tracks.parquet"), how=how)
        camera.join()
    live = made["live"]
    return {
        "movie": name, "Hz": rate, "median": live["latency_median"], "99 %": live["latency_99"],
        "lost": live["missing"] + live["late"], "most behind": live["most_behind"],
        "cpu of all": round(time.process_time() - before, 1),
    }  # fmt: skip


def cpu(name: str) -> measure.Row:
    """CPU seconds of a frame, which other work on the machine does not change: to detect, and to link."""
    images = movie(*MOVIES[name], FRAMES)
    seer = Seer(open_images(images[0], axes="ZYX"), DetectionSettings(), 1)
    seer.learn(images.__getitem__, range(8))
    follower, seconds, spots = Follower(TrackingSettings(), 20, 1), list[tuple[float, float]](), 0
    for k, image in enumerate(images):
        begin = time.process_time()
        seen = seer.detections(image, k)
        middle = time.process_time()
        follower.add(k, seen)
        seconds += [(middle - begin, time.process_time() - middle)]
        spots += len(seen)
    after = np.array(seconds[20:])
    detect, link = np.median(after, axis=0).round(4).tolist()
    whole = np.percentile(after.sum(axis=1), [50, 99]).round(4).tolist()
    return {
        "movie": name, "spots": spots // FRAMES, "detect": detect, "link": link, "median": whole[0],
        "99 %": whole[1],
    }  # fmt: skip


def long(frames: int) -> measure.Row:
    """A recording with faults as fast as it goes; the run is killed, and begun again."""
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
            for k in order:
                gauss = np.exp(-((axis - path[k][..., None]) ** 2) / (2 * 1.3**2))
                light = 100 + 150 * np.einsum("py,px->yx", gauss[:, 0], gauss[:, 1])
                image = seeds.poisson(light).astype(np.uint16)[None]
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

        camera = threading.Thread(target=record)
        options = ["--until", str(frames - 1), "--poll", "0.02", "--wait", "2", "--keep", "--learn", "20"]
        command = [sys.executable, *ARGUMENTS, str(folder), "-o", str(output), *options]
        begin = time.monotonic()
        camera.start()
        peaks, kills = [], 0
        while True:
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            end = time.monotonic() + (rng.uniform(20, 60) if kills < KILLED else 1e9)
            while process.poll() is None and time.monotonic() < end:
                if not (
                    output.with_name("tracks.live.parquet") / "ended"
                ).exists():  # the last pass takes more
                    peaks.append(resident(process.pid))
                time.sleep(1)
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            kills += 1
        camera.join()
        seconds = time.monotonic() - begin
        record_of = json.loads(output.with_name("tracks.watch.json").read_text("utf-8"))
        seen = read_tracks(output.with_name("tracks.live.parquet")).detections
    half = peaks[len(peaks) // 4 : len(peaks) // 2], peaks[3 * len(peaks) // 4 :]
    return {
        "frames": frames, "missing": len(missing), "counted as missing": record_of["live"]["missing"],
        "late": record_of["live"]["late"], "frames live": len(np.unique(seen.frame)), "kills": kills,
        "MB in the second quarter": max(half[0]), "MB in the last": max(half[1]), "seconds": round(seconds),
        **record_of["links_changed"],
    }  # fmt: skip


def resident(process: int) -> int:
    """MB of memory of a process."""
    try:
        text = Path(f"/proc/{process}/statm").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20


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
    row: measure.Row = {"recording": name, "frames": seen.frame_count, "detections": len(seen)}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("latency", "cpu", "long", "links"))
    parser.add_argument("--frames", type=int, default=7200)
    parser.add_argument("--data", type=Path, help="folder of the shared recordings")
    parser.add_argument("--learn", type=int, default=20)
    given = parser.parse_args()
    if given.what == "latency":
        rows = [latency(name, rate) for name in MOVIES for rate in RATES]
    elif given.what == "cpu":
        rows = [cpu(name) for name in MOVIES]
    elif given.what == "long":
        rows = [long(given.frames)]
    else:
        rows = [links(name, given.data, given.learn) for name in SHARED if (given.data / name).exists()]
    for row in rows:
        print(json.dumps(row))
    print(json.dumps(measure.stated()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "MB")


if __name__ == "__main__":
    main()
