"""Learned linking with the GPU against 16 cores: seconds by stage, and how far links and probabilities agree.

Movies as in bench_learn: density 1, births, deaths, misses and clutter 2 % each, a gate of one mean
nearest-neighbour distance. `cpu` and `gpu` are seconds between two events around `track` without divisions,
from detections on the host to tracks there, after a run that compiles; below a stage's name are its seconds
on both. `gpu_divisions` is the same with divisions, as is the default.

The last row is `outbid track --stream --device gpu` of 10^8 detections, 1,000 frames of 100,000, from Parquet
to Parquet: seconds by stage. Its movie is made as in bench_gpu_movie, kappa .14. `--record` keeps all in
tests/bench/gpu_long_record.json.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bench_learn
import measure
import measure_gpu
import numpy as np
from bench_gpu_movie import command, write_movie

from outbid import TrackingRun, TrackingSettings, track
from outbid.compute.timing import stages_timed

CASES = ((5, 100_000), (1000, 1000), (5, 1_000_000))
"""Frames, particles."""


def timed(detections, device: str, *, divisions: bool = False) -> tuple[float, dict[str, float], TrackingRun]:
    """Seconds of a run, of its stages, and the run."""
    settings = TrackingSettings(device=device, divisions=divisions)
    small = bench_learn.movie(0.14, 0, 0.02, particles=10_000, frames=5).detections
    track(small if device == "cpu" else detections, settings)
    with stages_timed() as (stages, _):
        taken, run = measure_gpu.timed(lambda: track(detections, settings))
    return taken / 1e3, stages, run


def compared(frames: int, particles: int) -> measure.Row:
    """One movie on both."""
    detections = bench_learn.movie(0.14, 0, 0.02, particles=particles, frames=frames).detections
    (cpu, here, one), (gpu, there, other) = (timed(detections, device) for device in ("cpu", "gpu"))
    keys = [run.tracks.links @ [len(detections), 1] for run in (one, other)]
    p, q = (run.tracks.link_probability for run in (one, other))
    common, in_one, in_other = np.intersect1d(*keys, return_indices=True)
    row = {
        "detections": len(detections), "frames": frames, "cpu": cpu, "gpu": gpu, "times": cpu / gpu,
        "gpu_divisions": timed(detections, "gpu", divisions=True)[0],
        "links_alike": len(common) / max(map(len, keys)),
        "probability_apart": float(np.abs(p[in_one] - q[in_other]).max()),
        "fallbacks": other.stats["fallbacks"],
    }  # fmt: skip
    return row | {name: f"{here[name]:.3f} {there[name]:.3f}" for name in here if here[name] > 0.01}


def streamed(frames: int, particles: int, limit: float) -> measure.Row:
    """A movie that a command links by ranges of frames, after a small one, for which it compiles."""
    options = ["--stream", "--device", "gpu"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for many, size in ((30, 2000), (frames, particles)):
            source = folder / f"{many}.parquet"
            write_movie(source, many, size, 0.14)
            row = command(source, folder / f"{many}_tracks.parquet", options, limit)
    return {"detections": frames * particles, "frames": frames} | row


def rows(limit: float) -> Iterator[measure.Row]:
    yield from itertools.starmap(compared, CASES)
    yield streamed(1000, 100_000, limit)


if __name__ == "__main__":
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="keep the rows in gpu_long_record.json")
    chosen = parser.parse_args()
    results: dict[str, Any] = {"rows": []}
    measure.show(measure_gpu.kept("learned", rows(chosen.limit), results, record=chosen.record))
