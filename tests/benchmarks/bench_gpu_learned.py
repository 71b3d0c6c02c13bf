"""Learned linking with the GPU against 16 cores: seconds by stage, and how far links and probabilities agree.

Movies as in bench_learn: density 1, births, deaths, misses and clutter 2 % each, a gate of one mean
nearest-neighbour distance. `cpu` and `gpu` are seconds between two events around `track`, from detections on
the host to tracks there, after a run that compiles; below a stage's name are its seconds on both. Detections
are read and links are decided on the host in both.
"""

from __future__ import annotations

import bench_learn
import measure
import measure_gpu
import numpy as np

from outbid import TrackingRun, TrackingSettings, track
from outbid._timing import stages_timed

CASES = ((5, 100_000), (1000, 1000), (5, 1_000_000))
"""Frames, particles."""


def timed(detections, device: str) -> tuple[float, dict[str, float], TrackingRun]:
    """Seconds of a run, of its stages, and the run."""
    settings = TrackingSettings(device=device, divisions=False)
    track(detections.take(detections.frame < 5), settings)
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
        "links_alike": len(common) / max(map(len, keys)),
        "probability_apart": float(np.abs(p[in_one] - q[in_other]).max()),
        "fallbacks": other.stats["fallbacks"],
    }  # fmt: skip
    return row | {name: f"{here[name]:.3f} {there[name]:.3f}" for name in here if here[name] > 0.01}


if __name__ == "__main__":
    measure.options(__doc__).parse_args()
    measure.show(compared(*case) for case in CASES)
