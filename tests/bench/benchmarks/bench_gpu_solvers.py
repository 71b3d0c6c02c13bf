"""Movies linked by every solver that has kernels for it, on the GPU and on the CPU: seconds, and equal links.

A walk of 10 frames at kappa .2, gate .8 density^(-1/3). `gpu_s` and `cpu_s` are seconds of `track`, the GPU's
of a second run. `--record` keeps the rows in tests/bench/gpu_long_record.json.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import measure
import numpy as np
from measure_gpu import kept

from outbid import Detections, TrackingSettings, track
from outbid.tracking import TrackingRun

SOLVERS = (
    "bid_and_augment", "sparsified", "auction", "hungarian:tree", "greedy_switching:parallel",
    "hungarian:classical",
)  # fmt: skip


def walk(frames: int, particles: int) -> Detections:
    rng = np.random.default_rng(0)
    start = rng.uniform(0, particles ** (1 / 3), (1, particles, 3))
    place = start + np.cumsum(rng.normal(0, 0.2, (frames, particles, 3)), axis=0)
    return Detections.from_table(np.repeat(np.arange(frames), particles), place.reshape(-1, 3))


def _tracked(seen: Detections, solver: str, device: str) -> tuple[float, TrackingRun]:
    start = time.perf_counter()
    run = track(seen, TrackingSettings(0.8, solver=solver, device=device))
    return time.perf_counter() - start, run


def rows(frames: int, particles: int) -> Iterator[measure.Row]:
    seen = walk(frames, particles)
    for solver in SOLVERS:
        _tracked(seen, solver, "gpu")  # compiles
        _tracked(walk(2, 200), solver, "cpu")
        gpu, there = _tracked(seen, solver, "gpu")
        cpu, here = _tracked(seen, solver, "cpu")
        yield {
            "solver": solver,
            "frames": frames,
            "particles": particles,
            "gpu_s": round(gpu, 3),
            "cpu_s": round(cpu, 3),
            "links": len(here.tracks.links),
            "same_links": bool(np.array_equal(here.tracks.links, there.tracks.links)),
            "fallbacks": there.stats["fallbacks"],
            "worst_gap": max(float(run.stats["worst_gap"]) for run in (here, there)),
        }


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--record", action="store_true", help="keep the rows in gpu_long_record.json")
    chosen = parser.parse_args()
    measure.show(kept("solvers", rows(10, 5000), {"rows": []}, record=chosen.record))


if __name__ == "__main__":
    main()
