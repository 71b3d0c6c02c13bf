"""Linkers that link each two successive frames by themselves: to the nearest, and as a paper does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid.assignment import AssignmentProblem, PointCosts, assign
from outbid.assignment.papers.auction import Auction
from outbid.particles.detections import Detections

from .linker import Linker, Links, Settings, matched

EPSILON = 1e-3
"""The fixed ε of the auction, in units of density^(-1/3)."""


class Nearest(Linker):
    """Nearest-neighbour linker without assignment: two detections may be linked to the same third one.

    Theory predicts the precision of these links.
    """

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        del settings, unit
        return matched(detections, lambda a, b: cKDTree(b).query(a)[1])


class PaperAuction(Linker):
    """The matching of Vasconcelos & Rosenhahn: least total distance between two frames, without a gate.

    Every detection of the smaller frame is matched, at any distance.
    """

    def link(self, detections: Detections, settings: Settings, unit: float) -> Links:
        del settings
        solver = Auction(EPSILON * unit, 1.0)

        def match(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.int32]:
            return assign(AssignmentProblem(PointCosts(before, after)), solver).col_of_row

        return matched(detections, match)


LINKERS = {"nearest": Nearest(), "auction": PaperAuction()}
