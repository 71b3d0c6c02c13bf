"""Real movies, linked without their identities and scored against them: F1 over links without divisions.

The gate follows from the detections alone: it is 1.5 times the median distance from a detection to its
nearest neighbour in the same frame. `max_distance` is this gate in the unit of the positions. All other
settings are the defaults, with each of the two costs. Where only every k-th frame is kept, a true link is a
chain of k links.

The movies are in the folder given by the environment variable OUTBID_DATA, by default in ../shared/data
beside the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
from scipy.spatial import cKDTree

from outbid import Detections, TrackingSettings, read_tracks, score, track

DATA = Path(os.environ.get("OUTBID_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
MOVIES = (
    ("celegans/L1.csv", 1),
    ("ascidian/Pm08.csv", 1),
    ("turbulence/tracers_2000.csv", 1),
    ("turbulence/subcube.csv", 1),
    ("celegans/L1.csv", 3),
    ("turbulence/subcube.csv", 2),
)


def median_neighbour_distance(detections: Detections) -> float:
    """Median distance to the nearest neighbour in the same frame, frames of one detection left out."""
    frames = np.split(detections.position, detections.frame_start[1:-1])
    return float(np.median(np.concatenate([cKDTree(f).query(f, 2)[0][:, 1] for f in frames if len(f) > 1])))


def linked(name: str, stride: int, cost: str) -> measure.Row:
    truth = read_tracks(DATA / name).every(stride)
    distance = 1.5 * median_neighbour_distance(truth.detections)
    settings = TrackingSettings(max_distance=distance, cost=cost)
    seconds, run = measure.best_of(2, lambda: track(truth.detections, settings))
    values = score(run.tracks, truth, gate=distance, families=("links", "identity")).values
    shown = ("link_f1", "link_precision", "link_recall", "n_true_links", "idf1", "complete_tracks")
    return {"max_distance": distance, "seconds": seconds} | {name: values[name] for name in shown}


def table(limit: float) -> Iterator[measure.Row]:
    for name, stride in MOVIES:
        for cost in ("euclidean", "squared"):
            row = measure.in_process(linked, name, stride, cost, limit=limit)
            yield {"movie": name, "every": stride, "cost": cost} | row


if __name__ == "__main__":
    chosen = measure.options(__doc__).parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"There is no folder {DATA}. Name the one with the movies: OUTBID_DATA=folder.")
    measure.show(table(chosen.limit), chosen.csv)
