"""LapTrack (Fukai & Kawaguchi 2023): the linear assignment of Jaqaman et al. in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from outbid.particles.detections import Detections

from .linker import PIXELS, Grid, Linker, Links, Settings, by_frame, grid_of, lengths


class LapTrack(Linker):
    """Squared distances; `start_cost` is the cost of a start or an end over that at the gate."""

    package = "laptrack"
    usual = Settings(radius=15 / PIXELS, start_cost=1.05, gap=2)

    def grid(self, *, gaps: bool) -> list[Settings]:
        radii = lengths(0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
        whole = grid_of({"radius": radii, "start_cost": (1.05, 0.5), "gap": (0,)})
        # With gap closing it takes a hundred times as long, so only a part of the grid has it.
        closed: Grid = {"radius": lengths(1.25, 2.0), "start_cost": (0.5,), "gap": (1,)}
        return whole + (grid_of(closed) if gaps else [])

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        import laptrack

        cutoff = (float(settings["radius"]) * unit) ** 2
        gap, cost = int(settings["gap"]), float(settings["start_cost"]) * cutoff
        make: Any = laptrack.LapTrack  # its signature hides which parameters have defaults
        tracker = make(
            cutoff=cutoff, track_start_cost=cost, track_end_cost=cost, splitting_cutoff=False,
            merging_cutoff=False, gap_closing_cutoff=cutoff if gap else False,
            gap_closing_max_frame_count=gap,
        )  # fmt: skip
        first = detections.frame_start
        edges = tracker.predict(by_frame(detections)).edges
        links = [(first[t] + row, first[later] + follower) for (t, row), (later, follower) in edges]
        return np.array(sorted(links), dtype=np.int64).reshape(-1, 2)


LINKERS = {"laptrack": LapTrack()}
