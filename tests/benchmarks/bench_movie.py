"""A movie of 1000 frames of 1000 particles: linking, the command, compilation and start-up time.

Lengths are in units of density^(-1/3); the mean nearest-neighbour distance is .5540 of these. The particles
follow a persistent walk of persistence .5 and step .3324 (.6 nearest-neighbour distances), the gate is .5540
(1.0 nearest-neighbour distance), births and deaths are 5 %. `link` is the time of `track` without
compilation, `command` the wall time of `outbid track movie.csv -o movie.parquet`. `compile_all` tracks and
scores with an empty cache and again with a filled cache: the difference is the compilation time of all
kernels except those that it lists. `sample` is the wall time of the command that tracks the bundled sample,
`start` that of `outbid --help`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import measure

import outbid.data
from outbid import TrackingSettings, Tracks, track, write_detections
from outbid.simulate.motions import PersistentWalk
from outbid.simulate.walks import WalkSettings, walk

NEAREST = 0.55396
"""Mean nearest-neighbour distance in units of density^(-1/3)."""
STEP, GATE = 0.6 * NEAREST, 1.0 * NEAREST
"""In units of density^(-1/3): .3324 and .5540."""

TRACK_AND_SCORE = """
import importlib, json, pkgutil, time
from numba.core.dispatcher import Dispatcher
import outbid.data, outbid
from outbid import *
start = time.perf_counter()
path = outbid.data.sample("walks")
seen = read_detections(path)
for solver in ("greedy", "bid_and_augment"):
    run = track(seen, TrackingSettings(max_distance=4, max_gap=2, solver=solver))
score(run.tracks, read_tracks(path))
seconds = time.perf_counter() - start
kernels = [
    (f"{module.name}.{name}", value)
    for module in pkgutil.walk_packages(outbid.__path__, "outbid.")
    if module.name.endswith("_cpu")
    for name, value in vars(importlib.import_module(module.name)).items()
    if isinstance(value, Dispatcher)
]
unused = [name for name, kernel in kernels if not kernel.signatures]
print(json.dumps([seconds, len(kernels), unused]))
"""


def movie(frames: int, particles: int) -> Tracks:
    side = particles ** (1 / 3)
    motion = PersistentWalk(step=STEP, persistence=0.5)
    box = (side, side, side)
    return walk(WalkSettings(motion, particles, frames, box, "reflect", birth_rate=0.05, death_rate=0.05))


def link(frames: int, particles: int) -> measure.Row:
    settings = TrackingSettings(max_distance=GATE)
    track(movie(3, 100).detections, settings)  # compiles
    detections = movie(frames, particles).detections
    seconds, run = measure.best_of(3, lambda: track(detections, settings))
    return {"seconds": seconds, "links": run.stats["links"], "gap": run.stats["worst_gap"]}


def shell(repeats: int, *words: object) -> float:
    """Least wall time of several runs of a command."""
    command = [str(Path(sys.executable).with_name("outbid")), *map(str, words)]
    seconds, _ = measure.best_of(repeats, lambda: subprocess.run(command, check=True, capture_output=True))
    return seconds


def command(frames: int, particles: int) -> measure.Row:
    with tempfile.TemporaryDirectory() as name:
        source, output = Path(name, "movie.csv"), Path(name, "movie.parquet")
        write_detections(source, movie(frames, particles).detections)
        words = ("track", source, "-o", output, "--max-distance", GATE, "--overwrite")
        return {"seconds": shell(3, *words), "csv_mb": round(source.stat().st_size / 1e6, 1)}


def compile_all() -> measure.Row:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}

        def use() -> tuple[float, int, list[str]]:
            command = [sys.executable, "-c", TRACK_AND_SCORE]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            return json.loads(done.stdout)

        (first, kernels, unused), (second, _, _) = use(), use()
    row = {"seconds": first - second, "first_use": first, "cached": second, "kernels": kernels}
    return row | {"not_compiled": " ".join(unused) or "none"}


def sample() -> measure.Row:
    with tempfile.TemporaryDirectory() as name:
        words = ("track", outbid.data.sample("walks"), "-o", Path(name, "tracks.csv"), "--overwrite")
        return {"seconds": shell(5, *words, "--max-distance", 4, "--max-gap", 2)}


def start() -> measure.Row:
    return {"seconds": shell(5, "--help")}


def table(limit: float) -> Iterator[measure.Row]:
    size = {"frames": 1000, "particles": 1000}
    for case in (link, command):
        yield {"what": case.__name__} | size | measure.in_process(case, *size.values(), limit=limit)
    for alone in (compile_all, sample, start):
        yield {"what": alone.__name__} | measure.in_process(alone, limit=limit)


if __name__ == "__main__":
    chosen = measure.options(__doc__).parse_args()
    measure.show(table(chosen.limit), chosen.csv)
