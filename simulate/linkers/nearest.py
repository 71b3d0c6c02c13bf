"""Link every detection to the nearest one in the next frame; theory predicts the precision of these links."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid.detections import Detections

from .linker import NONE, Linker, Settings


class Nearest(Linker):
    """Nearest-neighbour linker without assignment: two detections may be linked to the same third one."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings, unit
        found, start = [NONE], detections.frame_start
        for (a, b), (_, c) in pairwise(pairwise(start)):
            if a < b < c:
                target = cKDTree(detections.position[b:c]).query(detections.position[a:b])[1]
                found.append(np.column_stack([np.arange(a, b), b + target]))
        return np.concatenate(found)


LINKERS = {"nearest": Nearest()}
