"""Vasconcelos & Rosenhahn's matching by their auction with a fixed ε, frame pair by frame pair."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from outbid.assignment import AssignmentProblem, PointCosts, assign
from outbid.assignment.auction import Auction
from outbid.detections import Detections

from .linker import NONE, Linker, Settings

EPSILON = 1e-3
"""The fixed ε, in units of density^(-1/3)."""


class FixedAuction(Linker):
    """Auction with a fixed ε that matches every detection of the smaller frame, at any distance."""

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings
        found = [NONE]
        for (a, b), (_, c) in pairwise(pairwise(detections.frame_start)):
            if a < b < c:
                problem = AssignmentProblem(PointCosts(detections.position[a:b], detections.position[b:c]))
                partner = assign(problem, Auction(EPSILON * unit, 1.0)).col_of_row
                source = np.nonzero(partner >= 0)[0]
                found.append(np.column_stack([a + source, b + partner[source]]).astype(np.int64))
        return np.concatenate(found)


LINKER = FixedAuction()
