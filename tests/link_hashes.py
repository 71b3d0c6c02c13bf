"""Hashes of links, costs and scores over the sample and recorded movies: what a change must not change.

``python tests/link_hashes.py`` writes tests/link_hashes.json anew, after a change that is to change results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from outbid import Detections, TrackingSettings, Tracks, read_tracks, score, track
from outbid.assignment import SOLVERS
from outbid.data import sample

RECORD = Path(__file__).with_suffix(".json")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
MOVIES = {
    "walks": 1,
    "celegans/L1.csv": 3,
    "ascidian/Pm08.csv": 1,
    "turbulence/tracers_2000.csv": 1,
    "turbulence/subcube.csv": 2,
}
"""The bundled sample and recorded movies, and every how many-th frame is linked."""
QUANTILES = np.linspace(0.1, 0.9, 9)
"""Of costs that are learned: they depend on the processor, beyond their last bits, by where learning ends."""


def movie(name: str) -> Tracks:
    """A movie with its true links."""
    return read_tracks(sample(name) if name == "walks" else DATA / name).every(MOVIES[name])


def gate_of(detections: Detections) -> float:
    """1.5 times the median distance from a detection to its nearest neighbour in the frame."""
    frames = np.split(detections.position, detections.frame_start[1:-1])
    return 1.5 * float(
        np.median(np.concatenate([cKDTree(f).query(f, 2)[0][:, 1] for f in frames if len(f) > 1]))
    )


def cases(name: str) -> Iterator[tuple[str, TrackingSettings]]:
    """How a movie is linked: by a gate of two costs, with nothing set, and the sample by every solver."""
    gate = gate_of(movie(name).detections)
    yield "gated", TrackingSettings(max_distance=gate, max_gap=2)
    yield "squared", TrackingSettings(max_distance=gate, cost="squared")
    yield "learned", TrackingSettings()
    if name == "walks":
        for solver in SOLVERS:
            yield solver, TrackingSettings(max_distance=gate, solver=solver)


def hashes(name: str, settings: TrackingSettings) -> dict[str, object]:
    """Number of links; hashes of links, scores, costs and margins; quantiles of costs that are learned."""
    truth = movie(name)
    tracks = track(truth.detections, settings).tracks
    values = score(tracks, truth, gate=gate_of(truth.detections)).values
    costs = [np.asarray(tracks.link_cost), np.asarray(tracks.link_margin)]
    rounded = json.dumps({score: f"{value:.9g}" for score, value in sorted(values.items())})
    found: dict[str, object] = {
        "links": len(tracks.links),
        "links_sha256": hashlib.sha256(tracks.links.tobytes()).hexdigest(),
        "scores_sha256": hashlib.sha256(rounded.encode()).hexdigest(),
    }
    if settings.max_distance is None:
        costs.append(np.asarray(tracks.link_probability))
        return found | {"costs": [np.quantile(of, QUANTILES).round(4).tolist() for of in costs]}
    return found | {"costs_sha256": hashlib.sha256(b"".join(of.tobytes() for of in costs)).hexdigest()}


if __name__ == "__main__":
    found = {name: {case: hashes(name, settings) for case, settings in cases(name)} for name in MOVIES}
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
