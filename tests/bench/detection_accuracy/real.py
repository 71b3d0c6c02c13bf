"""Recorded stacks with only the voxel given: scores where there is a reference, counts where there is none.

Reference points of the fly's nuclei are a tracker's result, a third of them in haze below; their z is not
compared. Detections are matched one to one with them within 5 pixels of the plane. The stacks are in the
folder named by OUTBID_DATA, by default in ../shared/data beside the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from outbid import Detections, DetectionSettings, detect
from outbid.formats.images.folders import open_movie

from . import agree

DATA = Path(os.environ.get("OUTBID_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
NEAR = {"fly": 5.0, "faketracks": 2.0}  # pixels of the plane
FLY_RADII = (7.0, 8.0, 9.0)  # sensible ones of the nuclei, in pixels
FLY_VOXEL = (5.0, 1.0, 1.0)
SPOTS_Y = (18.0, 58.0, 98.0)  # of the three spots in every volume, in pixels
OFF_Y = 2.0  # by which a spot may be off it
Row = dict[str, Any]


def _reference(path: Path) -> Detections:
    """The reference's points, read without the project's readers."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    return Detections.from_table(
        table["frame"].astype(int), np.column_stack([table[name] for name in ("z", "y", "x")])
    )


def _score(seen: Detections, truth: Detections, near: float, frames: int) -> Row:
    """Jaccard index and its parts over frames, z left out."""
    right = wrong = missed = 0
    for frame in range(frames):
        found, wanted = (one.position[one.rows_of(frame)][:, 1:] for one in (seen, truth))
        hits = int((agree.pairs(found, wanted, near) >= 0).sum())
        right, wrong, missed = right + hits, wrong + len(found) - hits, missed + len(wanted) - hits
    return {
        "jsc": round(agree.jaccard((right, wrong, missed)), 4),
        "right": right, "wrong": wrong, "missed": missed,
    }  # fmt: skip


def fly(radius: float | None = None) -> Row:
    """Nuclei of a fly: anisotropic, textured, touching."""
    movie = open_movie(DATA / "drosophila_nuclei" / "tif", spacing=FLY_VOXEL)
    truth = _reference(DATA / "drosophila_nuclei" / "tracks.csv")
    seen, used = detect(list(movie.frames()), DetectionSettings(radius, spacing=movie.spacing))
    return {"radius": used.radius, **_score(seen, truth, NEAR["fly"], movie.frame_count)}


def faketracks() -> Row:
    """Simulated by others, in 8 bits with a textured background; the reference is TrackMate's result."""
    movie = open_movie(DATA / "faketracks" / "FakeTracks.tif")
    truth = _reference(DATA / "faketracks" / "tidy.csv")
    seen, used = detect(list(movie.frames()), DetectionSettings(spacing=movie.spacing))
    return {"radius": used.radius, **_score(seen, truth, NEAR["faketracks"], movie.frame_count)}


def three_spots() -> Row:
    """Five volumes with three spots each, at known y."""
    movie = open_movie(DATA / "volumes_3spots")
    seen, used = detect(list(movie.frames()), DetectionSettings())
    count = [len(seen.position[seen.rows_of(frame)]) for frame in range(5)]
    rows = [seen.position[seen.rows_of(frame), 1] for frame in range(5)]
    at_y = [np.abs(y[:, None] - SPOTS_Y).min(axis=0, initial=np.inf).max() < OFF_Y for y in rows]
    return {"radius": used.radius, "counts": count, "all_there": bool(all(at_y))}


def colloids(name: str, dark: bool) -> Row:
    """Colloids in 8 bits; no reference, so only how many and how steady from frame to frame."""
    movie = open_movie(DATA / "colloids_png" / name)
    frames = list(movie.frames(range(min(movie.frame_count, 5))))
    seen, used = detect(frames, DetectionSettings(dark=dark))
    count = [len(seen.position[seen.rows_of(frame)]) for frame in range(len(frames))]
    return {"radius": used.radius, "counts": count}


CASES: dict[str, Callable[[], Row]] = {
    "fly": fly, **{f"fly radius {radius:g}": partial(fly, radius) for radius in FLY_RADII},
    "faketracks": faketracks, "3 spots": three_spots, "colloids": partial(colloids, "", True),
    "colloids stuck": partial(colloids, "pims_stuck.tif", False),
}  # fmt: skip
"""What gives a row, by name."""


def folder_of(name: str) -> Path:
    """Where the stacks of a case are."""
    folders = {"fly": "drosophila_nuclei", "3": "volumes_3spots", "colloids": "colloids_png"}
    return DATA / folders.get(name.split()[0], name)
