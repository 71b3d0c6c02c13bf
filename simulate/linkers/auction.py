"""The matching of Vasconcelos & Rosenhahn: least total distance between two frames, all pairs allowed.

Every detection of the smaller frame is matched, at any distance.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from outbid.assignment import AssignmentProblem, PointCosts, assign
from outbid.assignment.auction import Auction
from outbid.detections import Detections

from .linker import NONE, Linker, Settings

EPSILON = 1e-3
"""The fixed ε of the auction, in units of density^(-1/3)."""


class PaperAuction(Linker):
    """The paper's own algorithm, without a gate: one assignment of all detections for each pair of frames."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings
        found, solver = [NONE], Auction(EPSILON * unit, 1.0)
        for (a, b), (_, c) in pairwise(pairwise(detections.frame_start)):
            if a < b < c:
                problem = AssignmentProblem(PointCosts(detections.position[a:b], detections.position[b:c]))
                partner = assign(problem, solver).col_of_row
                source = np.nonzero(partner >= 0)[0]
                found.append(np.column_stack([a + source, b + partner[source]]).astype(np.int64))
        return np.concatenate(found)


LINKERS = {"auction": PaperAuction()}
