"""ByoTrack's Kalman linker (Hanson et al. 2024): a filter for each particle, likelihoods as costs."""

from __future__ import annotations

import numpy as np

from outbid.particles.detections import Detections

from .linker import PIXELS, Grid, Linker, Links, Settings, by_frame, grid_of, lengths, links_of


class ByoTrack(Linker):
    """`threshold` is in standard deviations of the filter and sets the least likelihood of a link."""

    package = "byotrack"
    # Spots of its usual radius of 2 pixels: half of it as noise of detection, all of it as process.
    usual = Settings(
        order=1, process=2 / PIXELS, detection=1 / PIXELS, threshold=3.0, first=5.0, max_gap=3
    )  # fmt: skip

    def grid(self, *, gaps: bool) -> list[Settings]:
        shared: Grid = {"detection": lengths(0.1), "max_gap": (0, 2) if gaps else (0,)}
        still: Grid = {"order": (0,), "process": lengths(0.3, 0.6), "threshold": (2.0, 3.0, 4.0)}
        moving: Grid = {"order": (1,), "process": lengths(0.15, 0.3, 0.6), "threshold": (3.0, 4.0)}
        # `first` is of the velocity, which only order 1 has.
        first: Grid = {"first": (1.0, 2.0, 4.0)}
        return grid_of(shared | still | {"first": (1.0,)}) + grid_of(shared | moving | first)

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        import torch
        from byotrack import PointDetections
        from byotrack.implementation.linker.frame_by_frame import kalman_linker

        chosen = kalman_linker.KalmanLinkerParameters(
            1.0, detection_std=float(settings["detection"]) * unit, n_valid=1,
            process_std=float(settings["process"]) * unit, kalman_order=int(settings["order"]),
            n_gap=int(settings["max_gap"]), initial_std_factor=float(settings["first"]),
            track_building="detection",
        )  # fmt: skip
        chosen.estimate_association_threshold(3, float(settings["threshold"]))
        seen = [PointDetections(torch.tensor(each, dtype=torch.float32)) for each in by_frame(detections)]
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            tracks = kalman_linker.KalmanLinker(chosen).run(None, seen)
        finally:
            torch.set_num_threads(threads)
        first, rows = detections.frame_start, []
        for track in tracks:
            row = track.detection_ids.numpy().astype(np.int64)
            rows.append(np.where(row >= 0, row + first[track.start : track.start + len(row)], -1))
        return links_of(detections, rows)


LINKERS = {"byotrack": ByoTrack()}
