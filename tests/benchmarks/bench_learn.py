"""The time that the posterior over links takes to learn, against the engine of passes, in one process.

Movies of 400 particles and 25 frames of some kinds of motion (`tests/accuracy`), kappa .14, nothing given and
no divisions. `seconds` and `passes_seconds` are CPU seconds on one thread of `by_posterior` and `by_passes`,
the least of two runs after one that compiles; `ratio` is one over the other. `sweeps` led to the posterior,
without those of starts that lost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import measure

sys.path.append(str(Path(__file__).resolve().parents[1]))

from accuracy.movies import KINDS

from outbid import Detections, Tracks, score
from outbid.learned import Asked, Engine, by_passes, by_posterior

CASES = (
    "swimmers", "run_and_tumble", "two_populations", "in_wells", "long_jumps", "few", "misses_and_clutter",
    "shear", "subdiffusion",
)  # fmt: skip
KAPPA = 0.14


def timed(engine: Engine, seen: Detections, truth: Tracks) -> tuple[float, float, int]:
    """CPU seconds, link F1 and sweeps."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        shown, links = engine(seen, Asked(divisions=False))
        taken.append(time.process_time() - start)
    value = score(Tracks(seen, links.pairs), truth, families=("links",)).values["link_f1"]
    return min(taken[1:]), value, shown.passes


def case(kind: str) -> measure.Row:
    truth = KINDS[kind](0, KAPPA)
    seconds, value, sweeps = timed(by_posterior, truth.detections, truth)
    old_seconds, old_value, _ = timed(by_passes, truth.detections, truth)
    return {
        "detections": len(truth.detections), "seconds": seconds, "passes_seconds": old_seconds,
        "ratio": seconds / old_seconds, "sweeps": sweeps, "link_f1": value, "passes_link_f1": old_value,
    }  # fmt: skip


def table(limit: float) -> Iterator[measure.Row]:
    for kind in CASES:
        yield {"movie": kind} | measure.in_process(case, kind, limit=limit)


if __name__ == "__main__":
    chosen = measure.options(__doc__).parse_args()
    measure.show(table(chosen.limit), chosen.csv)
