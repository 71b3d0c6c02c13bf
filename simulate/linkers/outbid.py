"""Outbid with default settings: everything is learned from the detections."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.detections import Detections
from outbid.tracking import TrackingSettings, track

from .linker import Linker, Settings


class Outbid(Linker):
    """`track` with default settings, which include divisions."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings, unit
        return track(detections, TrackingSettings(device="cpu"), workers=1).tracks.links


LINKERS = {"outbid": Outbid()}
