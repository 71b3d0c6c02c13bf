"""Outbid given a gate: optimal assignment of distances from frame to frame, without a motion model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections
from outbid.tracking import TrackingSettings, track

from .linker import Linker, Settings, grid_of, lengths


class Plain(Linker):
    """`track` with a `max_distance` and the default unmatched cost, half of the cost at the gate."""

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of({
            "gate": lengths(0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0), "cost": ("euclidean", "squared"),
            "max_gap": (0, 1, 2) if gaps else (0,),
        })  # fmt: skip

    def defaults(self, *, gaps: bool) -> Settings:
        return {"gate": lengths(1.5)[0], "cost": "euclidean", "max_gap": 2 if gaps else 0}

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        chosen = TrackingSettings(
            max_distance=float(settings["gate"]) * unit, cost=str(settings["cost"]),
            max_gap=int(settings["max_gap"]), device="cpu",
        )  # fmt: skip
        return track(detections, chosen, workers=1).tracks.links


LINKERS = {"plain": Plain()}
