"""The matching of Vasconcelos & Rosenhahn: least total distance between two frames, all pairs allowed.

Every detection of the smaller frame is matched, at any distance. The paper's auction finds the same
matching, up to its ε: the linker `auction`. `whole` has the solver `sparsified`, which is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from outbid.assignment import AbstractAssignmentSolver, AssignmentProblem, PointCosts, assign
from outbid.assignment.auction import Auction
from outbid.detections import Detections

from .linker import NONE, Linker, Settings

EPSILON = 1e-3
"""The fixed ε of the auction, in units of density^(-1/3)."""


class Whole(Linker):
    """Linker that solves one assignment of all detections for each pair of frames, without a gate.

    Parameters
    ----------
    solver : callable
        The solver, given density^(-1/3) in the unit of the positions.
    """

    def __init__(self, solver: Callable[[float], AbstractAssignmentSolver | str]) -> None:
        self._solver = solver

    def link(self, detections: Detections, settings: Settings, unit: float) -> NDArray[np.int64]:
        del settings
        found = [NONE]
        for (a, b), (_, c) in pairwise(pairwise(detections.frame_start)):
            if a < b < c:
                problem = AssignmentProblem(PointCosts(detections.position[a:b], detections.position[b:c]))
                partner = assign(problem, self._solver(unit)).col_of_row
                source = np.nonzero(partner >= 0)[0]
                found.append(np.column_stack([a + source, b + partner[source]]).astype(np.int64))
        return np.concatenate(found)


def _auction(unit: float) -> Auction:
    """The paper's own algorithm."""
    return Auction(EPSILON * unit, 1.0)


LINKERS = {"whole": Whole(lambda _: "sparsified"), "auction": Whole(_auction)}
