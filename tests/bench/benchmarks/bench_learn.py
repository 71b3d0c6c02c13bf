"""The time that learning takes: tracking without settings against linking with a given gate.

Simulated movies have density 1; lengths are in units of density^(-1/3). Births and deaths are 2 %, the
localisation noise is .03. `kappa` is the standard deviation of a step along one axis, `persistence` is in
frames, `miss` is the share of missed detections and also that of clutter. The linker with a given gate (1.5
mean nearest-neighbour distances, .8309 density^(-1/3)) is called plain. `plain_seconds` and `seconds` are CPU
seconds on one thread, the least of three runs after one that compiles; `ratio` is `seconds` over
`plain_seconds`. `plain_wall` and `wall` are wall seconds on all cores. `plain_shell` and `shell` are wall
seconds of ``outbid track`` from CSV to CSV, a process for each run, the least of three.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import measure

from outbid import TrackingRun, TrackingSettings, Tracks, score, track, write_detections
from outbid.simulate.microscope import Microscope, observe
from outbid.simulate.motions import BrownianWalk, Motion, OrnsteinUhlenbeckWalk
from outbid.simulate.walks import WalkSettings, walk

GATE = 1.5 * 0.55396
"""In units of density^(-1/3): .8309, 1.5 mean nearest-neighbour distances."""
CASES = (
    (0.1, 0, 0.0, 50, 2000), (0.1, 3, 0.1, 50, 2000), (0.2, 0, 0.0, 50, 2000), (0.2, 3, 0.1, 50, 2000),
    (0.3, 10, 0.0, 50, 2000), (0.3, 3, 0.1, 50, 2000), (0.3, 3, 0.1, 500, 2000), (0.14, 0, 0.02, 50, 10_000),
    (0.2, 0, 0.02, 50, 10_000),
)  # fmt: skip
"""Kappa, persistence, misses and clutter, frames, particles. In the last two, of 5 x 10^5 detections, four
standard deviations of a step are one mean nearest-neighbour distance, and .8 density^(-1/3)."""


def movie(
    kappa: float, persistence: float, miss: float, *, particles: int = 2000, frames: int = 50, seed: int = 0
) -> Tracks:
    """Detections of a simulated movie, with the true links."""
    motion: Motion = BrownianWalk(kappa)
    if persistence:
        step2 = 2 * persistence**2 * (1 / persistence - 1 + math.exp(-1 / persistence))
        motion = OrnsteinUhlenbeckWalk(kappa * math.sqrt(3 / step2), persistence)
    box = (particles ** (1 / 3),) * 3
    truth = walk(WalkSettings(motion, particles, frames, box, "reflect", 0.02, 0.02, seed=seed))
    return observe(truth, Microscope((0.03,) * 3, miss, miss), box=box, seed=seed)


def compared(truth: Tracks, gate: float) -> measure.Row:
    learning, plain = TrackingSettings(), TrackingSettings(max_distance=gate)
    runs = [cpu_seconds(truth, settings) for _ in range(4) for settings in (plain, learning)][2:]
    (plain_seconds, _), (seconds, run) = (
        min(runs[which::2], key=lambda timed: timed[0]) for which in range(2)
    )
    values = score(run.tracks, truth, gate=gate, families=("links", "identity"), link_rule="edge").values
    assert run.learned is not None
    plain_wall, wall = (
        measure.best_of(3, lambda settings=settings: track(truth.detections, settings))[0]
        for settings in (plain, learning)
    )
    plain_shell, shell = shell_seconds(truth, gate)
    return {
        "detections": len(truth.detections), "plain_seconds": plain_seconds, "seconds": seconds,
        "ratio": seconds / plain_seconds, "sweeps": run.learned.sweeps, "gap": run.stats["worst_gap"],
        "link_f1": values["link_f1"], "idf1": values["idf1"], "plain_wall": plain_wall, "wall": wall,
        "plain_shell": plain_shell, "shell": shell,
    }  # fmt: skip


def shell_seconds(truth: Tracks, gate: float) -> tuple[float, float]:
    """Wall seconds of the command, with a given gate and without."""
    with tempfile.TemporaryDirectory() as folder:
        movie = Path(folder, "movie.csv")
        write_detections(movie, truth.detections)
        command = [str(Path(sys.executable).with_name("outbid")), "track", str(movie), "-o"]
        command += [str(movie.with_name("tracks.csv")), "--overwrite"]
        plain, learning = (
            measure.best_of(3, lambda words=words: subprocess.run(words, check=True, capture_output=True))[0]
            for words in ([*command, "--max-distance", str(gate)], command)
        )
    return plain, learning


def cpu_seconds(truth: Tracks, settings: TrackingSettings) -> tuple[float, TrackingRun]:
    start = time.process_time()
    run = track(truth.detections, settings, workers=1)
    return time.process_time() - start, run


def simulated(kappa: float, persistence: float, miss: float, frames: int, particles: int) -> measure.Row:
    return compared(movie(kappa, persistence, miss, particles=particles, frames=frames), GATE)


def table(limit: float) -> Iterator[measure.Row]:
    for case in CASES:
        row = measure.in_process(simulated, *case, limit=limit)
        case_fields = dict(zip(("kappa", "persistence", "miss", "frames", "particles"), case, strict=True))
        yield {"movie": "walks"} | case_fields | row


if __name__ == "__main__":
    chosen = measure.options(__doc__).parse_args()
    measure.show(table(chosen.limit))
