"""Real movies, identities removed, linked and scored against them: F1 over links that are no divisions.

The largest distance is chosen by one rule that asks nothing but the detections: 1.5 times the median distance
from a detection to its nearest neighbour in the same frame. All other settings are the defaults, with
each of the two costs. At every k-th frame the true links are chains of k links.

The movies are in a folder that the environment variable OUTBID_DATA names, else in ../shared/data beside
the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid.tracker import Detections, TrackingSettings, Tracks, read_tracks, score, track

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


def every(truth: Tracks, stride: int) -> Tracks:
    """The truth at every `stride`-th frame; a chain of links between two of them is one link."""
    kept = (truth.detections.frame - truth.detections.first_frame) % stride == 0
    first_link = np.searchsorted(truth.links[:, 0], np.arange(len(kept) + 1))

    def followed(chains: NDArray[np.int64]) -> NDArray[np.int64]:
        """Each chain (source, end) with all links that leave its end: a chain splits at a division."""
        ways = np.diff(first_link)[chains[:, 1]]
        nth = np.arange(ways.sum()) - np.repeat(np.cumsum(ways) - ways, ways)
        links = np.repeat(first_link[chains[:, 1]], ways) + nth
        return np.column_stack([np.repeat(chains[:, 0], ways), truth.links[links, 1]])

    links, open_chains = [], followed(np.repeat(np.flatnonzero(kept)[:, None], 2, axis=1))
    while len(open_chains):
        done = kept[open_chains[:, 1]]
        links.append(open_chains[done])
        open_chains = followed(open_chains[~done])
    number = np.cumsum(kept) - 1
    found = number[np.concatenate(links)]
    return Tracks(truth.detections.every(stride), found[np.lexsort((found[:, 1], found[:, 0]))])


def linked(name: str, stride: int, cost: str) -> measure.Row:
    truth = every(read_tracks(DATA / name), stride)
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
