"""Link every detection to the nearest one in the next frame; theory predicts the precision of these links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid.detections import Detections

from .linker import Linker, Settings, matched


class Nearest(Linker):
    """Nearest-neighbour linker without assignment: two detections may be linked to the same third one."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings, unit
        return matched(detections, lambda a, b: (np.arange(len(a)), cKDTree(b).query(a)[1]))


LINKERS = {"nearest": Nearest()}
