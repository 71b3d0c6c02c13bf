"""Every particle is followed by what is nearest to it in the next frame: what theory can be written for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid.detections import Detections

from .linker import NONE, Linker, Settings


class Nearest(Linker):
    """No assignment at all: two may be followed by the same one."""

    def link(self, detections: Detections, settings: Settings, nearest: float) -> NDArray[np.int64]:
        del settings, nearest
        found, start = [NONE], detections.frame_start
        for (a, b), (_, c) in pairwise(pairwise(start)):
            if a < b < c:
                target = cKDTree(detections.position[b:c]).query(detections.position[a:b])[1]
                found.append(np.column_stack([np.arange(a, b), b + target]))
        return np.concatenate(found)


LINKER = Nearest()
