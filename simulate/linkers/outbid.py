"""Outbid with default settings, everything being learned, and given a gate, without a motion model."""

from __future__ import annotations

from outbid.particles.detections import Detections
from outbid.tracking import TrackingSettings, track

from .linker import Linker, Links, Settings, grid_of, lengths


class Outbid(Linker):
    """`track` with default settings, which include divisions."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        del settings, unit
        return track(detections, TrackingSettings(device="cpu"), workers=1).tracks.links


class Plain(Linker):
    """`track` with a `max_distance` and the default unmatched cost, half of the cost at the gate.

    Optimal assignment of distances from frame to frame.
    """

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of({
            "gate": lengths(0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0), "cost": ("euclidean", "squared"),
            "max_gap": (0, 1, 2) if gaps else (0,),
        })  # fmt: skip

    def defaults(self, *, gaps: bool) -> Settings:
        return {"gate": lengths(1.5)[0], "cost": "euclidean", "max_gap": 2 if gaps else 0}

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        chosen = TrackingSettings(
            max_distance=float(settings["gate"]) * unit, cost=str(settings["cost"]),
            max_gap=int(settings["max_gap"]), device="cpu",
        )  # fmt: skip
        return track(detections, chosen, workers=1).tracks.links


LINKERS = {"outbid": Outbid(), "plain": Plain()}
