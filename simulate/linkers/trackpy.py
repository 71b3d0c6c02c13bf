"""trackpy (Crocker & Grier 1996): least squared distances within a search range, solved by subnets.

`trackpy_velocity` predicts a particle by the last step of the nearest track (`NearestVelocityPredict`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections

from .linker import NONE, Linker, Settings, grid_of, lengths, links_of_labels


class Trackpy(Linker):
    """`trackpy.link`; the search range, which has no default, is reduced where subnets are too large.

    There are no links if they stay too large.
    """

    packages = ("trackpy",)
    usual: ClassVar[Settings | None] = None

    def __init__(self, *, predicts: bool) -> None:
        self.predicts = predicts

    def grid(self, *, gaps: bool) -> list[Settings]:
        return grid_of(
            {"radius": lengths(0.8, 1.0, 1.25, 1.5, 2.0, 2.5), "memory": (0, 1, 2) if gaps else (0,)}
        )

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
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
        return links_of_labels(detections, found["particle"].sort_index().to_numpy(np.int64))


LINKERS = {"trackpy": Trackpy(predicts=False), "trackpy_velocity": Trackpy(predicts=True)}
