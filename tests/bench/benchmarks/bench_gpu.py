"""One frame pair, and a movie, on the GPU: timed with events, against the CPU path in the same run.

Points are uniform at density 1; lengths are in units of density^(-1/3). `displacement` is the standard
deviation of a step along one axis (kappa); 5 % of the particles are replaced. Positions are in device memory
before; everything that `match` does is timed: candidates, costs, bids, paths, certificate, margins. The
median of five runs counts. `--record` starts a new tests/bench/gpu_record.json with the origin and the test
results; the other benchmarks add their tables.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import cupy  # noqa: TID251  (the benchmark times the device itself)
import measure
import numpy as np
from measure_gpu import begin_record, milliseconds, recorded
from pairs import frame_pair

from outbid import Detections, TrackingSettings, match, track

REPORTED = ("tests", "skipped", "failures", "errors", "time")
INSTANCES = [
    (100_000, 0.5, 1.5),
    (1_000_000, 0.2, 0.8),
    (1_000_000, 0.5, 1.5),
    (1_000_000, 1.0, 2.0),
    (10_000_000, 0.2, 1.0),
]


def frame_pairs() -> Iterator[measure.Row]:
    for count, displacement, gate in INSTANCES:
        source, target, _ = frame_pair(count, displacement)
        there = cupy.asarray(source), cupy.asarray(target)
        taken, found = milliseconds(lambda there=there, gate=gate: match(*there, gate))  # type: ignore[misc]
        row: measure.Row = {
            "particles": count,
            "displacement": displacement,
            "gate": gate,
            "candidates": round(len(found.assignment.problem.costs.values) / count, 1),
            "gpu_ms": round(taken, 2),
            "gap": found.assignment.gap,
        }
        if count <= 1_000_000:
            match(source[:1000], target[:1000], gate)
            start = time.perf_counter()
            here = match(source, target, gate, workers=2)
            row["cpu_ms"] = round(1e3 * (time.perf_counter() - start), 1)
            row["same_links"] = bool((cupy.asnumpy(found.target) == here.target).all())
        yield row


def movie(frames: int, particles: int) -> Iterator[measure.Row]:
    """All frame pairs of a movie as one problem; kappa .1, gate 1.05, about 5 candidates per particle."""
    rng = np.random.default_rng(0)
    side = particles ** (1 / 3)
    position = rng.uniform(0, side, (1, particles, 3)) + np.cumsum(
        rng.normal(0, 0.1, (frames, particles, 3)), axis=0
    )
    frame = np.repeat(np.arange(frames), particles)
    points = position.reshape(-1, 3)
    there = cupy.asarray(points)
    taken, found = milliseconds(
        lambda: match(
            there[:-particles],
            there[particles:],
            1.05,
            source_block=frame[:-particles],
            target_block=frame[particles:],
            offsets=(1, 1),
        )
    )
    row: measure.Row = {"frames": frames, "particles": particles, "gpu_ms": round(taken, 2)}
    row |= {"candidates": round(len(found.assignment.problem.costs.values) / len(points), 1)}
    row |= {"gap": found.assignment.gap}
    detections = Detections.from_table(frame, points)
    for device in ("gpu", "cpu"):
        settings = TrackingSettings(1.05, device=device)
        seconds, _ = measure.best_of(3, lambda settings=settings: track(detections, settings))  # type: ignore[misc]
        row[f"track_{device}_ms"] = round(1e3 * seconds, 1)
    yield row


def outcome(folder: Path) -> dict[str, int]:
    """How many tests passed, failed and were skipped, and their seconds, from pytest's reports."""
    total = Counter[str]()
    for report in folder.glob("*.xml"):
        for suite in ET.parse(report).iter("testsuite"):
            total.update({name: round(float(suite.attrib[name])) for name in REPORTED})
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - total["skipped"] - failed
    return {"passed": passed, "skipped": total["skipped"], "failed": failed, "seconds": total["time"]}


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument(
        "--record", type=Path, help="start a new gpu_record.json; folder of pytest's --junitxml"
    )
    chosen = parser.parse_args()
    pairs, movies = frame_pairs(), movie(1000, 1000)
    if chosen.record:
        begin_record(outcome(chosen.record))
        pairs, movies = recorded("frame_pairs", pairs, 90), recorded("movies", movies, 30)
    measure.show(pairs)
    measure.show(movies)


if __name__ == "__main__":
    main()
