"""trackpy (Crocker & Grier 1996): least squared distances within a search range, solved by subnets.

`trackpy_velocity` predicts a particle by the last step of the nearest track (`NearestVelocityPredict`).
"""

from __future__ import annotations

import numpy as np

from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks

from .linker import NONE, Linker, Links, Settings, grid_of, lengths


class Trackpy(Linker):
    """`trackpy.link`; the search range, which has no default, is reduced where subnets are too large.

    There are no links if they stay too large.
    """

    package = "trackpy"
    usual = None

    def __init__(self, *, predicts: bool) -> None:
        self.predicts = predicts

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of(
            {"radius": lengths(0.8, 1.0, 1.25, 1.5, 2.0, 2.5), "memory": (0, 1, 2) if gaps else (0,)}
        )

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        import pandas as pd
        import trackpy
        from trackpy.predict import NearestVelocityPredict

        trackpy.quiet()
        link = NearestVelocityPredict().link_df if self.predicts else trackpy.link_df
        radius, axes = float(settings["radius"]) * unit, ["z", "y", "x"]
        table = pd.DataFrame(detections.position, columns=axes).assign(frame=detections.frame)
        try:
            found = link(
                table, radius, pos_columns=axes, memory=int(settings["memory"]),
                adaptive_stop=0.1 * radius, adaptive_step=0.9,
            )  # fmt: skip
        except trackpy.SubnetOversizeException:
            return NONE
        label = found["particle"].sort_index().to_numpy(np.int64)
        return Tracks.from_track_ids(detections, label).links


LINKERS = {"trackpy": Trackpy(predicts=False), "trackpy_velocity": Trackpy(predicts=True)}
