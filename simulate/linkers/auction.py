"""The matching of Vasconcelos & Rosenhahn: least total distance between two frames, all pairs allowed.

Every detection of the smaller frame is matched, at any distance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.assignment import AssignmentProblem, PointCosts, assign
from outbid.assignment.auction import Auction
from outbid.detections import Detections

from .linker import Linker, Settings, matched

EPSILON = 1e-3
"""The fixed ε of the auction, in units of density^(-1/3)."""


class PaperAuction(Linker):
    """The paper's own algorithm, without a gate: one assignment of all detections for each pair of frames."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings
        solver = Auction(EPSILON * unit, 1.0)

        def match(before: NDArray[np.float64], after: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
            partner = assign(AssignmentProblem(PointCosts(before, after)), solver).col_of_row
            source = np.nonzero(partner >= 0)[0]
            return source, partner[source]

        return matched(detections, match)


LINKERS = {"auction": PaperAuction()}
