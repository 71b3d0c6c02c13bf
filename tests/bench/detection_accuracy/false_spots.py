"""False spots: the share that is realised where one was asked for, and those in images without spots."""

from __future__ import annotations

from typing import Any

import numpy as np

from outbid import DetectionSettings, detect

from . import agree
from .cells import Cell
from .separated import BACKGROUNDS, empty, scene, separated

ASKED = (0.01, 0.05, 0.10)
SCENES = {
    cell.name: cell
    for renderer in ("camera", "optics")
    for dimensions, radius in ((2, 1.5), (2, 3.0), (3, 2.5))
    for cell in (scene(renderer, dimensions, radius, snr) for snr in (3.0, 5.0))
}
"""Of separated spots, by name."""
EMPTIES = {
    f"{renderer} {dimensions}D {kind}": (kind, renderer, dimensions)
    for renderer in ("camera", "optics")
    for dimensions in (2, 3)
    for kind in BACKGROUNDS
    if (dimensions, kind) != (2, "along z")
}
"""Backgrounds by name; a plane has none along z."""
FDR_SEEDS, FDR_SPREAD = 10, 0.5
EMPTY_SEEDS = 9
MOST = 1 / 3  # false spots in an image without any
FACTOR = 2.0  # between the realised share and the one asked for
Row = dict[str, Any]


def realised(cell: Cell) -> Row:
    """False spots among those found, for each share asked for, over all images of a scene.

    Spots are true within a radius of one: how well they are placed is judged elsewhere.
    """
    row: Row = {"spots": 0, **{f"found_{q:g}": 0 for q in ASKED}, **{f"false_{q:g}": 0 for q in ASKED}}
    for seed in range(FDR_SEEDS):
        one = separated(cell, seed, FDR_SPREAD)
        row["spots"] += len(one.truth)
        for share in ASKED:
            settings = DetectionSettings(spacing=cell.voxel, fdr=share)
            found = agree.scaled(detect([one.image], settings, workers=1)[0].position, cell)
            which = agree.pairs(found, agree.scaled(one.truth, cell), cell.radius)
            row[f"found_{share:g}"] += len(found)
            row[f"false_{share:g}"] += int((which < 0).sum())
    return row


def shares(row: Row) -> dict[float, float]:
    """Realised shares by the share asked for."""
    return {q: row[f"false_{q:g}"] / max(row[f"found_{q:g}"], 1) for q in ASKED}


def in_nothing(case: tuple[str, str, int]) -> Row:
    """False spots in images of one background without spots, and in one of them at most."""
    count = [
        len(detect([empty(*case, seed)], DetectionSettings(), workers=1)[0]) for seed in range(EMPTY_SEEDS)
    ]
    return {"images": len(count), "false": int(np.sum(count)), "most": int(np.max(count))}
