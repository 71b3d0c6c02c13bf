"""ByoTrack's Kalman linker (Hanson et al. 2024): a filter for each particle, likelihoods as costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections

from .linker import PIXELS, Linker, Settings, by_frame, grid_of, lengths, links_of_labels


class ByoTrack(Linker):
    """`threshold` is in standard deviations of the filter and sets the least likelihood of a link."""

    packages = ("byotrack",)

    def grid(self, *, gaps: bool) -> list[Settings]:
        gap = (0, 2) if gaps else (0,)
        still = {
            "order": (0,),
            "process": lengths(0.3, 0.6),
            "detection": lengths(0.1),
            "threshold": (2.0, 3.0, 4.0),
        }
        moving = {
            "order": (1,),
            "process": lengths(0.15, 0.3, 0.6),
            "detection": lengths(0.1),
            "threshold": (3.0, 4.0),
        }
        first = (1.0, 2.0, 4.0)  # of the velocity, which only order 1 has
        return grid_of({**still, "first": (1.0,), "max_gap": gap}) + grid_of(
            {**moving, "first": first, "max_gap": gap}
        )

    def defaults(self, *, gaps: bool) -> Settings:
        del gaps
        # Spots of its usual radius of 2 pixels: half of it as noise of detection, all of it as process.
        return {
            "order": 1, "process": 2 / PIXELS, "detection": 1 / PIXELS, "threshold": 3.0, "first": 5.0,
            "max_gap": 3,
        }  # fmt: skip

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        import torch
        from byotrack import PointDetections
        from byotrack.implementation.linker.frame_by_frame.kalman_linker import (
            KalmanLinker,
            KalmanLinkerParameters,
        )

        chosen = KalmanLinkerParameters(
            1.0,
            detection_std=float(settings["detection"]) * unit,
            process_std=float(settings["process"]) * unit,
            kalman_order=int(settings["order"]),
            n_valid=1,
            n_gap=int(settings["max_gap"]),
            initial_std_factor=float(settings["first"]),
            track_building="detection",
        )
        chosen.estimate_association_threshold(3, float(settings["threshold"]))
        seen = [
            PointDetections(torch.tensor(position, dtype=torch.float32)) for position in by_frame(detections)
        ]
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            tracks = KalmanLinker(chosen).run(None, seen)
        finally:
            torch.set_num_threads(threads)
        first, label = detections.frame_start, np.full(len(detections), -1, dtype=np.int64)
        for number, track in enumerate(tracks):
            row = track.detection_ids.numpy().astype(np.int64)
            row = np.where(row >= 0, row + first[track.start : track.start + len(row)], -1)
            label[row[row >= 0]] = number
        return links_of_labels(detections, label)


LINKER = ByoTrack()
