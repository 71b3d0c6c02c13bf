"""trackpy with `NearestVelocityPredict`: a particle is predicted by the last step of the nearest track."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections

from .linker import Settings
from .trackpy import Trackpy, linked


class TrackpyVelocity(Trackpy):
    """trackpy with its predictor of velocities, and with the settings of `Trackpy`."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        from trackpy.predict import NearestVelocityPredict

        radius, memory = float(settings["radius"]) * unit, int(settings["memory"])
        return linked(NearestVelocityPredict().link_df, detections, radius, memory)


LINKER = TrackpyVelocity()
